"""Backends of routes that lead to a pool's replicas: the headers of each revision's requests and answers. Pure.

All revisions of a service have the same backend, the pool's Service. The gateway names service and version to it in
headers, which replace a client's own, and names the revision to the client.

Filters of a backend make it a cluster of its own in Envoy, named by its place in its rule, and a route to a new one may
come before it (`rules.py`). So each rule has two such backends from the beginning, at rest two of the same revision: a
canary begins and ends with a change of headers and weights, which a gateway takes up in one piece.
"""

from collections.abc import Mapping
from typing import Any

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import SERVICE_METADATA, Manifest, revision_of

VERSION_HEADER, REVISION_HEADER = "fairlead-model-version", "fairlead-revision"
_OF_REQUESTS, _OF_ANSWERS = "requestHeaderModifier", "responseHeaderModifier"
_TYPES = {_OF_REQUESTS: "RequestHeaderModifier", _OF_ANSWERS: "ResponseHeaderModifier"}
HALVES = (50, 50)
"""Weights of the backends of a single revision."""


def filters_of(desired: Desired, revision: DesiredRevision) -> tuple[Manifest, ...]:
    """Return the filters of a revision's backend; none where it has replicas of its own."""
    if not revision.pool:
        return ()
    called = {SERVICE_METADATA: f"{desired.namespace}/{desired.service}", VERSION_HEADER: revision.model_version}
    return _setting(_OF_REQUESTS, called), _setting(_OF_ANSWERS, {REVISION_HEADER: revision.name})


WITHHOLD_POOLS_HEADERS: Manifest = {
    "type": _TYPES[_OF_REQUESTS],
    _OF_REQUESTS: {"remove": [SERVICE_METADATA, VERSION_HEADER]},
}
"""The filter of rules to own replicas beside a pool: without the header any of them is as good for the gateway's hash,
and a client's own version is none of theirs."""


def revision_at(backend: Mapping[str, Any]) -> str:
    """Return the revision whose requests a route's backend takes."""
    for each in backend.get("filters", ()):
        for header in each.get(_OF_ANSWERS, {}).get("set", ()):
            if header["name"] == REVISION_HEADER:
                return str(header["value"])
    return revision_of(backend["name"])


def _setting(member: str, headers: Mapping[str, str]) -> Manifest:
    named = [{"name": name, "value": value} for name, value in headers.items()]
    return {"type": _TYPES[member], member: {"set": named}}
