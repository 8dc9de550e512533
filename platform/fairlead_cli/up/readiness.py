"""Readiness checks of the platform's components, from outside, as their users would."""

import os
import socket
from contextlib import suppress
from functools import cache

import httpx

from fairlead_cli.up.addresses import Address
from fairlead_cli.up.home import Home
from fairlead_cli.up.supervisor import Child

_TIMEOUT_S = 1.0
PARTS = ("gateway", "web", "worker")
"""Components that have to answer before the platform is up."""


def web_ready(address: Address) -> bool:
    """Return whether the control plane answers and reaches its database."""
    try:
        return _client().get(f"{address.url}/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


@cache
def _client() -> httpx.Client:
    """Return a reused client: creating one takes longer than a request."""
    return httpx.Client(timeout=_TIMEOUT_S, trust_env=False)


def worker_ready(home: Home, child: Child) -> bool:
    """Return whether this very worker takes tasks: it leaves its process id in a file once it does."""
    with suppress(OSError):
        text = (home.run / "worker.ready").read_text(encoding="utf-8").strip()
        return child.process is not None and text == str(child.process.pid)
    return False


def gateway_ready(gateway: Address) -> bool:
    """Return whether the gateway's address accepts connections."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(gateway.host, gateway.host)  # noqa: S104 - compared, not bound
    try:
        socket.create_connection((host, gateway.port), timeout=_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def waiting_for(home: Home, address: Address, gateway: Address, children: list[Child]) -> list[str]:
    """Return the names of components that are not ready yet."""
    by_name = {child.component.name: child for child in children}
    states = {
        "web": web_ready(address),
        "worker": worker_ready(home, by_name["worker"]),
        "gateway": gateway_ready(gateway),
    }
    return [name for name, ready in states.items() if not ready]


def last_lines(home: Home, component: str, count: int = 5) -> str:
    """Return the end of a component's log, to show why it did not come up."""
    path = home.logs / f"{component}.log"
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8192), os.SEEK_SET)
        return "\n".join(file.read().decode(errors="replace").strip().splitlines()[-count:])
    return ""
