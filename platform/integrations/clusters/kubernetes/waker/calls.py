"""External authorization calls of Envoy: what it sends about a request, and the answers. Pure.

Service and revision come from the policy of the route (`contextExtensions`), which no client can set.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from integrations.clusters.local.envoy.api import message

METHOD = "/envoy.service.auth.v3.Authorization/Check"
NAMESPACE, SERVICE, REVISION = "namespace", "service", "revision"
"""Names of the context extensions."""
_Request = message("envoy.service.auth.v3.CheckRequest")
_Response = message("envoy.service.auth.v3.CheckResponse")
_PERMISSION_DENIED = 7
_BUSY = 503
_BEARER = "Bearer "
_JSON = {"content-type": "application/json"}
_GRPC = re.compile(r"/(inference\.GRPCInferenceService|grpc\.health\.v1\.Health)/")
_GRPC_HEALTH = re.compile(
    r"/inference\.GRPCInferenceService/(Server(Live|Ready)|Model(Ready|Statistics))|/grpc\.health\.v1\.Health/\w+"
)
_HTTP_HEALTH = re.compile(
    r".*/(v2/health/(?P<live>live)|v2/health/ready|v2/models/(?P<v2>[^/]+)(/versions/[^/]+)?/ready|v1/models/(?P<v1>[^/:]+))"
)
_HTTP_STATISTICS = re.compile(r".*/v2/models/([^/]+/(versions/[^/]+/)?)?stats")

ALLOWED: bytes = _Response().SerializeToString()
"""The answer by which a request goes on."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that Envoy holds.

    Attributes:
        method, path: of HTTP; the path as the client sent it, without its query.
        token: of the caller; empty without one.
    """

    namespace: str
    service: str
    revision: str
    method: str
    path: str
    token: str

    @property
    def key(self) -> str:
        """Return `<namespace>/<service>`."""
        return f"{self.namespace}/{self.service}"

    @property
    def is_grpc(self) -> bool:
        """Return whether it is a gRPC call."""
        return bool(_GRPC.match(self.path))

    @property
    def is_probe(self) -> bool:
        """Return whether it asks for the health of the service over HTTP, which is answered without waking it."""
        return self._is_reading and bool(_HTTP_HEALTH.fullmatch(self.path))

    @property
    def needs_replica(self) -> bool:
        """Return whether it asks what only a replica knows that runs anyway: statistics, and health over gRPC."""
        if self.is_grpc:
            return bool(_GRPC_HEALTH.fullmatch(self.path))
        return self._is_reading and bool(_HTTP_STATISTICS.fullmatch(self.path))

    @property
    def _is_reading(self) -> bool:
        return self.method in ("GET", "HEAD") and not self.is_grpc

    def health(self) -> dict[str, object]:
        """Return what a probe reads of a service that takes requests."""
        found = _HTTP_HEALTH.fullmatch(self.path)
        if found is None or found["live"]:
            return {"live": True}
        model = found["v2"] or found["v1"]
        return {"name": model, "ready": True} if model else {"ready": True}


def read(content: bytes) -> Call:
    """Return the call of a CheckRequest; raises ValueError where it is no such message, or names no service."""
    try:
        attributes = _Request.FromString(content).attributes
    except DecodeError as error:
        raise ValueError("the message is not a CheckRequest of Envoy") from error
    named: Mapping[str, str] = attributes.context_extensions
    found = namespace, service, revision = (
        named.get(NAMESPACE, ""),
        named.get(SERVICE, ""),
        named.get(REVISION, ""),
    )
    if not all(found):
        raise ValueError(
            f"the context extensions {NAMESPACE}, {SERVICE} and {REVISION} have to name a service, and are {found}; "
            "the service's SecurityPolicy sets them"
        )
    http = attributes.request.http
    said = http.headers.get("authorization", "")
    token = said.removeprefix(_BEARER) if said.startswith(_BEARER) else ""
    return Call(namespace, service, revision, http.method, http.path.partition("?")[0], token)


def healthy(call: Call) -> bytes:
    """Return the answer to a probe of a service that is asleep: it takes requests, and sleeps on."""
    return _answer(200, json.dumps(call.health()), _JSON)


def refused(call: Call, sentence: str) -> bytes:
    """Return an answer with 503, over gRPC UNAVAILABLE, and a sentence; a later try may go through."""
    body = sentence if call.is_grpc else json.dumps({"error": sentence})
    return _answer(_BUSY, body, {"retry-after": "5", **_JSON})


def _answer(status: int, body: str, headers: Mapping[str, str]) -> bytes:
    added = [
        {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for name, value in headers.items()
    ]
    denied = {"status": {"code": status}, "headers": added, "body": body}
    answer: bytes = _Response(status={"code": _PERMISSION_DENIED}, denied_response=denied).SerializeToString()
    return answer
