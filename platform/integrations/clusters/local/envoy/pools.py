"""Requests to a pool's replicas: what names their service to those, and which of them gets them. Pure.

A pool's replica answers for many services. The gateway names service and version in headers, which are the same over
gRPC. A hash of the service's name picks the replica, so that its model is loaded by one of them.
"""

from typing import Any

from integrations.clusters.local.envoy.scopes import SERVICE_METADATA
from integrations.clusters.local.envoy.values import Backend, ServiceRoute

VERSION_HEADER = "fairlead-model-version"

Json = dict[str, Any]

# The header has been written for the scope by then: /serving/NS/SERVICE/..., or /host/NS/SERVICE.
BY_SERVICE: list[Json] = [
    {
        "header": {
            "header_name": SERVICE_METADATA,
            "regex_rewrite": {"pattern": {"regex": "^/[^/]+/([^/]+)/([^/?]+).*$"}, "substitution": r"\1/\2"},
        }
    }
]


def hashed(namespace: str, service: str) -> bytes:
    """Return what Envoy hashes of a request of the service."""
    return f"{namespace}/{service}".encode()


def names(service: ServiceRoute, backend: Backend) -> list[Json]:
    """Return the headers that name service and version to a pool's replica."""
    called = {SERVICE_METADATA: service.called, VERSION_HEADER: backend.model_version}
    return [
        {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for name, value in called.items()
    ]
