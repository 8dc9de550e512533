"""Start of the relay: its command, its sandbox and its sockets."""

import json
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from integrations.relay import program
from integrations.sandbox.policy import NetworkAccess, Sandbox
from serving_runtime.shared.egress import Network

LIMITS = {"core": 0, "nofile": 1024}
"""Of `resource`."""
_IDLE_S = 60.0
_WAITING = 128
"""Backlog that the kernel keeps for the relay, also while it restarts."""
_SYSTEM = ("/lib", "/lib32", "/lib64", "/usr")
_RESOLVER = ("gai.conf", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "nsswitch.conf", "resolv.conf", "services")


@dataclass(frozen=True, slots=True)
class Target:
    """One host and port that connections lead to.

    Attributes:
        host: in ASCII, an international name as IDNA.
        allowed: networks that it may be in although they are not public.
    """

    host: str
    port: int
    allowed: tuple[Network, ...] = ()


def listening(path: Path) -> socket.socket:
    """Return a socket at `path` that only this user may connect to, replacing an earlier one."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_WAITING)
    except OSError:
        listener.close()
        raise
    return listener


def command(routes: Sequence[tuple[int, Target]], *, idle_s: float = _IDLE_S) -> list[str]:
    """Return the command of a relay, given the descriptor numbers of its inherited sockets."""
    given = [
        {
            **asdict(target),
            "descriptor": descriptor,
            "allowed": ",".join(str(network) for network in target.allowed),
        }
        for descriptor, target in routes
    ]
    asked = {"packages": str(_runtime().parent), "routes": given, "idle_s": idle_s}
    return [sys.executable, "-I", "-S", program.__file__, json.dumps(asked)]


def sandbox() -> Sandbox:
    """Return what a relay may reach itself: the network, Python, its own two modules, and the name resolver's files."""
    runtime = _runtime()
    python = [sys.base_prefix, str(Path(sys.executable).parent), str(Path(sys.prefix, "pyvenv.cfg"))]
    own = [program.__file__, str(runtime / "__init__.py"), str(runtime / "shared")]
    return Sandbox(
        read=tuple(dict.fromkeys([*_SYSTEM, *(f"/etc/{name}" for name in _RESOLVER), *python, *own])),
        listed=(str(runtime.parent), str(runtime)),
        network=NetworkAccess.ALL,
    )


def _runtime() -> Path:
    """Return the folder of the runtime's package, whose `shared` part the relay imports."""
    found = find_spec("serving_runtime")
    assert found is not None  # noqa: S101 - it is imported above
    assert found.submodule_search_locations  # noqa: S101 - it is a package
    return Path(found.submodule_search_locations[0])
