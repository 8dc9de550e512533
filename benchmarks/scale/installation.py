"""Installation that is measured: its own database, broker and simulated API servers, and the chart's processes."""

import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import django
import httpx

from tests.servers.parts import free_port

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 900.0


def set_up(home: Path, database_url: str, broker_url: str) -> None:
    """Have this process and those that it starts use a database and a broker, and make the tables."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "FAIRLEAD_DATABASE_URL": database_url,
        "FAIRLEAD_BROKER_URL": broker_url,
        "FAIRLEAD_HOME": str(home),
        "FAIRLEAD_SECRET_KEY": "only-for-measuring-" + "x" * 40,
        "FAIRLEAD_LOG_LEVEL": "WARNING",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "platform"), str(ROOT))),
    }
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - what reads Django's settings

    call_command("migrate", verbosity=0)


class Requests(NamedTuple):
    """Requests of API servers so far: those of Fairlead, and by method and kind (of everybody where not known)."""

    ours: int
    kinds: Mapping[str, int]


class Clusters(Protocol):
    """Kubernetes clusters of an installation, whose API servers are simulated or real.

    Attributes:
        processes: those of all API servers, by name.
    """

    @property
    def processes(self) -> Mapping[str, int]: ...

    def file(self, number: int) -> dict[str, Any]:
        """Return the fields of a cluster's file that say how it is reached."""

    def requests(self) -> Requests:
        """Return what the API servers have answered."""

    def latency_ms(self) -> float:
        """Return how long one of them takes for an answer now."""


@dataclass
class ApiServers:
    """The process that simulates the API servers."""

    url: str
    authority: Path
    processes: Mapping[str, int]
    set_ms: float = 1.0

    def file(self, number: int) -> dict[str, Any]:
        """Return how a cluster is reached."""
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        there = {"server": f"{self.url}/c/{number}", "certificate-authority-data": authority}
        kubeconfig = {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": there}],
            "users": [{"name": "robot", "user": {"token": "measured"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
        }
        return {"connection": {"kubeconfig": kubeconfig}}

    def requests(self) -> Requests:
        """Return what was requested, all of it by Fairlead."""
        kinds = {name: int(count) for name, count in self.ask("/counts").items() if name != "objects"}
        return Requests(sum(kinds.values()), kinds)

    def latency_ms(self) -> float:
        """Return the latency that is set."""
        return self.set_ms

    def set_latency(self, milliseconds: float) -> None:
        """Have all answers come after a latency from now on."""
        self.ask(f"/latency/{milliseconds}")
        self.set_ms = milliseconds

    def ask(self, path: str) -> dict[str, Any]:
        """Return what one of its own pages says."""
        return dict(httpx.get(f"{self.url}{path}", verify=str(self.authority), trust_env=False, timeout=300).json())


@contextmanager
def api_servers(home: Path) -> Iterator[ApiServers]:
    """Give API servers that answer after a millisecond, until another latency is set."""
    certificate, key, port = home / "api.crt", home / "api.key", free_port()
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject)
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    files = ("--certificate", str(certificate), "--key", str(key))
    command = ("-m", "benchmarks.scale.api_server", "--port", str(port), "--latency-ms", "1", *files)
    with started(home, "api-servers", command) as process:
        servers = ApiServers(f"https://127.0.0.1:{port}", certificate, {"api-servers": process.pid})
        until(lambda: _answers(servers), "the API servers")
        yield servers


def _answers(servers: ApiServers) -> bool:
    try:
        return "objects" in servers.ask("/counts")
    except httpx.HTTPError:
        return False


@contextmanager
def started(home: Path, name: str, command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Python with these arguments meanwhile; its output goes to a file of that name in `home`."""
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *command], stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)  # nothing of it is kept
        process.wait()


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds; ends this process where it does not in time."""
    ends = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > ends:
            sys.exit(f"gave up waiting for {what}")
        time.sleep(0.5)


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)
