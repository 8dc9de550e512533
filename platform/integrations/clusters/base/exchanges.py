"""Recorded exchanges, and candidates that answer them again. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from integrations.clusters.base.desired import Patch, Resources, SecretKeyRef


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded inference request and a revision's answer.

    Of a model that answers a request several times it is the first answer.

    Attributes:
        request_id: the gateway's `x-request-id`; the same in a mirrored request's exchanges with both revisions.
        model_version: the version that answered; empty where the answer is an error.
        at: Unix seconds of the request.
        request, response: in V2's JSON form, tensors' data flat in row-major order. A tensor with the parameter
            {"encoding": "base64"} has as its only element the base64 of V2's binary form instead: FP16, BF16,
            non-finite numbers, bytes that are no text. Of an error the response is {"error": its message}.
        error_code: gRPC's name of the error, such as INVALID_ARGUMENT; empty where it was answered.
        took_ms: from reading the request to its answer, in the replica; None where it was not measured.
    """

    request_id: str
    revision: str
    model_version: str
    at: float
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    error_code: str = ""
    took_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model version that answers recorded requests without serving clients.

    Attributes:
        name: the `revision` of its exchanges.
        timeout_s: for loading the model, and for each answer.
        namespace, service: whose requests they are; it runs beside that service's replicas.
        replay: the replay of the service that it serves; leftovers of an earlier attempt at the same one are removed.
        env: on the local cluster with the values of secrets.
        artifact_digest, artifact_origin, secret_env, is_code, egress, resources, patches: as of a revision.
    """

    name: str
    model_name: str
    model_version: str
    artifact_uri: str
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
    is_code: bool = False
    egress: bool | None = False
    timeout_s: float = 60.0
    namespace: str = ""
    service: str = ""
    replay: str = ""
    artifact_digest: str = ""
    artifact_origin: str = ""
    resources: Resources = field(default_factory=Resources)
    patches: tuple[Patch, ...] = ()
