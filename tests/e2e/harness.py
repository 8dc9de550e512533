"""The whole platform as its users start it, on free ports and in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from prometheus_client.parser import text_string_to_metric_families

from fairlead_cli.client import Client
from fairlead_cli.config import Access
from fairlead_cli.demo.requests import Request, RequestLog
from fairlead_cli.up import processes
from fairlead_cli.up.home import Home
from integrations.metrics.pages import read
from tests.servers.parts import free_port
from tests.servers.template import copy_sqlite

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
START_S, STOP_S = 180.0, 60.0


def until(look: Callable[[], T], within_s: float = 30.0, what: str = "it") -> T:
    """Return the first true value that `look` sees; it looks ever less often, since looking takes the processor too."""
    began = time.monotonic()
    while not (seen := look()):
        waited_s = time.monotonic() - began
        assert waited_s < within_s, f"{what} did not come true within {within_s:g} s"
        time.sleep(min(0.05 + waited_s / 20, 0.5))
    return seen


def family(home: Path) -> dict[int, str]:
    """Return every process that was started for this home, with how it was called."""
    return {
        seen.pid: processes.command_line(seen.pid)
        for seen in processes.everyone()
        if seen.alive and processes.has_variable(seen.pid, "FAIRLEAD_HOME", str(home))
    }


@dataclass
class Platform:
    """`fairlead up` with what a test needs to look at it.

    Attributes:
        cluster: where services run; one that is not local has its own gateway.
        python: that runs the platform and its replicas.
    """

    home: Path
    port: int = field(default_factory=free_port)
    gateway_port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None
    variables: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    cluster: str = "local"
    cluster_gateway: str = ""
    python: str = sys.executable

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def gateway(self) -> str:
        return self.cluster_gateway or self.local_gateway

    @property
    def local_gateway(self) -> str:
        return f"127.0.0.1:{self.gateway_port}"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))}
        return kept | self.variables | {"FAIRLEAD_HOME": str(self.home)}

    @property
    def command(self) -> list[str]:
        up = [self.python, "-m", "fairlead_cli", "up", "--home", str(self.home)]
        return [*up, "--address", f"127.0.0.1:{self.port}", "--gateway-address", self.local_gateway, *self.options]

    def start(self) -> None:
        self.home.parent.mkdir(parents=True, exist_ok=True)
        if not (self.home.exists() or "FAIRLEAD_DATABASE_URL" in self.variables):
            self.home.mkdir(mode=0o700)
            copy_sqlite(self.home / "fairlead.sqlite3")
        with (self.home.parent / "up.log").open("a") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        until(self._ready, START_S, "the platform's start")

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.home.parent / "up.log").read_text()
        with suppress(OSError, ValueError):
            said = json.loads((self.home / "endpoints.json").read_text())
            return bool(said["pid"] == self.process.pid)
        return False

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)

    def client(self) -> Client:
        return Client(Access(self.url, (self.home / "token").read_text().strip()))

    def fairlead(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run the command in the platform's working folder, as a person would."""
        return subprocess.run(
            [sys.executable, "-m", "fairlead_cli", *arguments],
            cwd=self.home.parent,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=check,
        )

    def replicas(self, revision: str) -> int:
        """Return how many processes of a revision's replicas there are."""
        return len(list((self.home / "run").glob(f"default.{revision}-*.json")))

    def pid(self, revision: str) -> int:
        """Return the process of a revision's first replica."""
        return int(self.record(f"default.{revision}-0")["pid"])

    def hanging_copies(self, revision: str) -> int:
        """Return how many copies of requests the gateway has sent to a shadow that were not answered."""
        status = json.loads((self.home / "cluster" / "status" / "default.digits.json").read_text())
        query = {"filter": f"{revision}/mirror-.*upstream_rq_active"}
        families = text_string_to_metric_families(read(status["gateway_stats_url"], query, timeout_s=20))
        return sum(int(sample.value) for family in families for sample in family.samples)

    def candidates(self) -> list[str]:
        """Return what answers recorded requests now."""
        return [line for line in family(self.home).values() if " replay " in line]

    def change(self, code: str) -> None:
        """Run code on the platform's database, as `manage.py shell` does."""
        self._manage("shell", "--command", code)

    def token_of(self, username: str, scope: str = "write") -> str:
        """Return a token of a user that the server's operator makes: no other user has it."""
        name = f"{username}-laptop"
        return self._manage("token_create", "--name", name, "--scope", scope, "--user", username).strip()

    def _manage(self, *arguments: str) -> str:
        home = Home(self.home)
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=self.environment | {"FAIRLEAD_SECRET_KEY_FILE": str(home.secret_key)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout

    def record(self, component: str) -> dict[str, Any]:
        """Return the running process of a part, once it runs."""
        seen = until(lambda: self.running(component), what=f"a process of {component}")
        assert seen is not None
        return seen

    def running(self, component: str) -> dict[str, Any] | None:
        """Return the running process of a part; None where it does not run."""
        with suppress(OSError, ValueError):
            seen: dict[str, Any] = json.loads((self.home / "run" / f"{component}.json").read_text())
            return seen if seen["pid"] and processes.is_running(seen["pid"], seen["start_ticks"]) else None
        return None


SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: digits}}
spec:
  cluster: {cluster}
  predictor:
    minReplicas: {replicas}
    model:
      modelFormat: {{name: onnx}}
      storageUri: models:/digits/1
  rollout: {{policy: {policy}}}
"""


def serve_digits(platform: Platform, models: Path, policy: str, *, replicas: int = 1) -> None:
    """Push the demo's first two models as versions of `digits` and serve version 1 under a policy file's policy.

    All by the command line, as a person would; returns when the service is ready.
    """
    folder = platform.home.parent
    (folder / "policy.yaml").write_text(policy)
    words = {"policy": yaml.safe_load(policy)["name"], "replicas": replicas, "cluster": platform.cluster}
    (folder / "service.yaml").write_text(SERVICE.format(**words))
    for name in ("v1", "v2"):
        platform.fairlead("models", "push", str(models / f"{name}.onnx"), "--name", "digits", "--wait")
    platform.fairlead("policies", "apply", "-f", "policy.yaml")
    platform.fairlead("services", "apply", "-f", "service.yaml", "--wait")


@contextmanager
def traffic(platform: Platform, models: Path, folder: Path, service: str, rate: float = 120.0) -> Iterator[RequestLog]:
    """Send requests while the block runs; afterwards the log holds all of them."""
    log = RequestLog(folder / "requests.jsonl")
    command = [sys.executable, "-m", "fairlead_cli.demo.traffic", "--gateway", platform.gateway, "--service", service]
    command += ["--images", str(models / "held-out.npz"), "--log", str(folder / "requests.jsonl"), "--rate", str(rate)]
    with subprocess.Popen(command, env=platform.environment) as process:
        try:
            until(lambda: any(request.ok for request in (log.read(), log.requests)[1]), what="the first answer")
            yield log
        finally:
            process.terminate()
    assert process.returncode == 0
    log.read()


def failed(log: RequestLog) -> list[Request]:
    log.read()
    return [request for request in log.requests if not request.ok]
