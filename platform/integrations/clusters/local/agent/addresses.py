"""Where a replica's process answers, and asking it there for its health."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from integrations.clusters.local.agent.sockets import ENDPOINTS, ReplicaSockets
from integrations.clusters.local.envoy.words import Endpoint
from integrations.pages import unix_url
from integrations.trust import trust

_HOST = "127.0.0.1"
_READY = "/v2/health/ready"
FREE_PORTS = [flag for name in ENDPOINTS for flag in (f"--{name}-address={_HOST}", f"--{name}-port=0")]
"""The flags of a runtime that is given no sockets."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a process answers: the gateway, health checks, scrapes."""

    endpoint: Endpoint
    ready_url: str
    metrics_url: str

    @classmethod
    def of_sockets(cls, sockets: ReplicaSockets) -> "Addresses":
        http, grpc, metrics = map(sockets.path, ENDPOINTS)
        return cls(Endpoint(str(http), str(grpc)), f"http://localhost{_READY}", unix_url(metrics, "/metrics"))

    @classmethod
    def of_ports(cls, ports: Mapping[str, Any]) -> "Addresses":
        """Return those of a port file; raises ValueError, KeyError and TypeError for one that is none."""
        http, grpc, metrics = (int(ports[name]) for name in ENDPOINTS)
        return cls(Endpoint(http, grpc), f"http://{_HOST}:{http}{_READY}", f"http://{_HOST}:{metrics}/metrics")


def written(port_file: Path, sockets: ReplicaSockets | None) -> Addresses | None:
    """Return where the runtime answers once it has written its port file, in one step; None before.

    Of a runtime on sockets the file says nothing that counts: the model may have written it.

    Raises:
        ValueError, KeyError, TypeError: it is no port file.
    """
    if not port_file.exists():
        return None
    return Addresses.of_ports(json.loads(port_file.read_bytes())) if sockets is None else Addresses.of_sockets(sockets)


@asynccontextmanager
async def client_of(sockets: ReplicaSockets | None, for_ports: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that reaches a process on its sockets, or the one for processes on ports."""
    if sockets is None:
        yield for_ports
        return
    transport = httpx.AsyncHTTPTransport(uds=str(sockets.path("http")), verify=trust())
    async with httpx.AsyncClient(transport=transport) as client:
        yield client


async def is_ready(client: httpx.AsyncClient, url: str, *, timeout_s: float) -> bool | None:
    """Return whether the runtime is ready; None where it does not answer."""
    try:
        answer = await client.get(url, timeout=timeout_s)
    except httpx.HTTPError:
        return None
    return answer.status_code == 200
