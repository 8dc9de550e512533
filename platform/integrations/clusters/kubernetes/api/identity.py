"""Service account token review: the identity behind a token, by the API server. Pure.

A token counts only if it was made for the audience `fairlead` (or `fairlead-records`, with fewer rights) and is bound
to a pod: then it ends with the pod, and only those who can read that pod's files have it.
"""

from collections.abc import Mapping
from typing import Any

from integrations.clusters.base import AUDIENCE, RECORDS_AUDIENCE, WorkloadIdentity

_ACCOUNT = ["system", "serviceaccount"]
_POD = "authentication.kubernetes.io/pod-name"  # Kubernetes: what a TokenReview returns beyond the user


def review(token: str) -> dict[str, Any]:
    """Return the TokenReview to create."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [AUDIENCE, RECORDS_AUDIENCE]},
    }


def identity_of(answer: Mapping[str, Any]) -> WorkloadIdentity | None:
    """Return the token's identity; None where it is invalid, of another audience, or not of a pod."""
    status = answer.get("status", {})
    audiences = {AUDIENCE, RECORDS_AUDIENCE}.intersection(status.get("audiences", ()))
    if not status.get("authenticated") or not audiences:
        return None
    user = status.get("user", {})
    words, pods = user.get("username", "").split(":"), user.get("extra", {}).get(_POD, ())
    if words[:2] != _ACCOUNT or len(words) != 4 or len(pods) != 1:
        return None
    return WorkloadIdentity(namespace=words[2], service=words[3], pod=pods[0], records_only=AUDIENCE not in audiences)
