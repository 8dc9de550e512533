"""Requests to a pool's replicas: what names their service to those, and which of them gets them. Pure.

A pool's replica answers for many services. The gateway names service and version in headers, which are the same over
gRPC. A hash of the service's name picks the replica, so that its model is loaded by one of them. A model with copies
has an entry of the route for each, all of the same cluster and of equal weight, and each writes what is hashed.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from integrations.clusters.local.envoy import maglev
from integrations.clusters.local.envoy.scopes import SERVICE_METADATA
from integrations.clusters.local.envoy.values import Backend, ServiceRoute

VERSION_HEADER = "fairlead-model-version"
COPY_HEADER = "fairlead-pool-copy"

Json = dict[str, Any]
BY_COPY: list[Json] = [{"header": {"header_name": COPY_HEADER}}]
"""Its entry of the route has written the header, whatever the client sent."""
_KEYS_TRIED = 16
"""Keys that are tried for each replica: enough for a copy in every one of 100 replicas."""

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


def homes(namespace: str, service: str, replicas: Sequence[str], copies: int) -> dict[str, int]:
    """Return what Envoy hashes for each copy of a service's model, and the number of the replica that this picks.

    The first is that of a service with one copy, so that its requests stay where they were. Each has another replica.
    """
    first = hashed(namespace, service)
    found: dict[str, int] = {}
    for number in range(_KEYS_TRIED * len(replicas)):
        if len(found) == min(copies, len(replicas)):
            break
        key = first + b"#%d" % number if number else first
        if (home := maglev.chosen(replicas, key)) not in found.values():
            found[key.decode()] = home
    return found


def has_copies(backends: Sequence[Backend]) -> bool:
    """Return whether several replicas have the model of one."""
    return any(len(backend.copies) > 1 for backend in backends)


def entries(service: ServiceRoute, backends: Sequence[Backend]) -> list[Backend]:
    """Return one backend for each copy, with an equal part of the share; the shares keep their proportions."""
    keys = [(backend.copies or (service.called,)) if backend.pooled else ("",) for backend in backends]
    of_each = math.lcm(*map(len, keys))
    return [
        replace(backend, share_percent=backend.share_percent * of_each // len(its), copies=(key,))
        for backend, its in zip(backends, keys, strict=True)
        for key in its
    ]


def names(service: ServiceRoute, backend: Backend) -> list[Json]:
    """Return the headers that name service and version to a pool's replica, and the copy where it is an entry."""
    called = {SERVICE_METADATA: service.called, VERSION_HEADER: backend.model_version}
    if len(backend.copies) == 1:
        called[COPY_HEADER] = backend.copies[0]
    return [
        {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for name, value in called.items()
    ]
