"""Addresses of a replica's process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integrations.clusters.local.agent.sockets import ENDPOINTS, ReplicaSockets
from integrations.clusters.local.envoy.values import Endpoint, Place
from integrations.metrics.pages import unix_url

_HOST = "127.0.0.1"
FREE_PORTS = [flag for name in ENDPOINTS for flag in (f"--{name}-address={_HOST}", f"--{name}-port=0")]
"""The flags of a runtime without sockets."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of a process for the gateway, health checks and scrapes.

    Attributes:
        metrics: of the metrics page; a pool's replica takes admin calls there.
    """

    endpoint: Endpoint
    metrics_url: str
    metrics: Place

    @classmethod
    def of_sockets(cls, sockets: ReplicaSockets) -> "Addresses":
        http, grpc, metrics = map(sockets.path, ENDPOINTS)
        return cls(Endpoint(str(http), str(grpc)), unix_url(metrics, "/metrics"), str(metrics))

    @classmethod
    def of_ports(cls, ports: Mapping[str, Any]) -> "Addresses":
        """Parse a port file; raises ValueError, KeyError and TypeError for an invalid one."""
        http, grpc, metrics = (int(ports[name]) for name in ENDPOINTS)
        return cls(Endpoint(http, grpc), f"http://{_HOST}:{metrics}/metrics", metrics)


def written(port_file: Path, sockets: ReplicaSockets | None) -> Addresses | None:
    """Return the runtime's addresses once it has written its port file, in one step; None before.

    Of a runtime on sockets the file's content is ignored: the model may have written it.

    Raises:
        ValueError, KeyError, TypeError: it is no port file.
    """
    if not port_file.exists():
        return None
    return Addresses.of_ports(json.loads(port_file.read_bytes())) if sockets is None else Addresses.of_sockets(sockets)
