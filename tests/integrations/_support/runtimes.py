"""Serving runtimes as processes, models for them, and traffic."""

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from integrations.artifacts.store import ArtifactStore, StoredArtifact
from integrations.clusters.base import Desired, DesiredRevision, Observed, ReplicaPhase, SessionAffinity
from integrations.clusters.local.agent.replicas.replica_memory import find_groups
from integrations.clusters.local.driver import LocalDriver
from integrations.clusters.local.files import Layout
from integrations.clusters.local.holder.wire import pair
from integrations.clusters.local.pid_files import is_alive, read_record
from serving_runtime.proto import ModelInferRequest

ROOT = Path(__file__).parents[3]


V2_SERVER = Path(__file__).with_name("v2_server.py")


RUNTIME = f"{sys.executable} -m serving_runtime"


INFER = "/inference.GRPCInferenceService/ModelInfer"


Found = TypeVar("Found")


def until(look: Callable[[], Found], what: str, within_s: float = 60.0) -> Found:
    """Return the first true thing `look` finds, at first often; fails the test with `what` at the deadline."""
    began = time.monotonic()
    while not (found := look()):
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            pytest.fail(f"not within {within_s:g} s: {what}")
        time.sleep(min(0.02 + waited_s / 20, 0.5))
    return found


def model(number: int) -> bytes:
    """Return an ONNX model that multiplies x [n, 4] by `number`."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    factor = helper.make_tensor("factor", TensorProto.FLOAT, [1], [float(number)])
    graph = helper.make_graph([helper.make_node("Mul", ["x", "factor"], ["y"])], "times", [x], [y], [factor])
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString())


def slow_model() -> bytes:
    """Return an ONNX model of x [n, 4] that keeps a core busy for so long that clients wait, whatever the machine."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    matrix = numpy_helper.from_array(np.full((600, 600), 0.001, np.float32), "matrix")
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0),
        helper.make_node("Add", ["matrix", "mean"], ["m0"]),
    ]
    for step in range(6):
        nodes.append(helper.make_node("MatMul", [f"m{step}", "matrix"], [f"p{step}"]))
        nodes.append(helper.make_node("Tanh", [f"p{step}"], [f"m{step + 1}"]))
    nodes += [
        helper.make_node("ReduceMean", ["m6"], ["work"], keepdims=0),
        helper.make_node("Add", ["x", "work"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "slow", [x], [y], [matrix])
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString())


def infer_json() -> bytes:
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}).encode()


def infer_message() -> bytes:
    request = ModelInferRequest(model_name="digits")
    request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    request.raw_input_contents.append(struct.pack("<4f", 1, 2, 3, 4))
    return bytes(request.SerializeToString())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'platform'}{os.pathsep}{ROOT}"}


class Cluster:
    """One home folder with an agent that can be started, killed and asked. Not every test starts the agent."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.layout = Layout(home / "cluster")
        self.driver = LocalDriver(folder=home / "cluster")
        self.artifacts = ArtifactStore(home / "artifacts", max_bytes=1 << 30)
        self.agent: subprocess.Popen[bytes] | None = None
        self.holder: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None

    def hold(self) -> None:
        """Have Envoy and replicas outlive the agent, as below `fairlead up`, until `let_go`."""
        self.channel, its = pair()
        with its, (self.home / "holder.log").open("ab") as log:
            command = [sys.executable, "-m", "integrations.clusters.local.holder", str(its.fileno())]
            self.holder = subprocess.Popen(
                command, env=_environment(), stdout=log, stderr=log, pass_fds=[its.fileno()], start_new_session=True
            )

    def let_go(self) -> None:
        """End what is held."""
        if self.channel is not None and self.holder is not None:
            self.channel.close()
            self.channel = None
            self.holder.wait(timeout=30)

    def start(
        self,
        *,
        runtime: str = f"{sys.executable} {V2_SERVER}",
        address: str = "127.0.0.1:0",
        egress: str = "",
        flags: Sequence[str] = (),
        under: Sequence[str] = (),
        **timing: float,
    ) -> None:
        """Start the agent.

        Args:
            egress: the networks that payload loggers may be in although they are not public.
            flags: further ones of the agent.
            under: a command that becomes the agent.
        """
        command = [*under, sys.executable, "-m", "integrations.clusters.local.agent", "--home", str(self.home)]
        command += ["--gateway-address", address, "--runtime", runtime]
        command += ["--egress-allowed-networks", egress, *flags]
        patience = {
            "probe_s": 0.1,
            "backoff_first_s": 0.1,
            "drain_s": 5.0,
            "exit_s": 5.0,
            **timing,
        }
        command += [f"--timing={name}={value}" for name, value in patience.items()]
        held = [] if self.channel is None else [self.channel.fileno()]
        command += [f"--holder={number}" for number in held]
        with (self.home / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                command, env=_environment(), stdout=log, stderr=log, pass_fds=held, start_new_session=True
            )
        until(self._up, f"the agent is up; its log: {self.log()}")

    def _up(self) -> bool:
        assert self.agent is not None
        assert self.agent.poll() is None, self.log()
        return (
            self.layout.cluster_status.exists()
            and self.status()["pid"] == self.agent.pid
            and self.status()["components"][0]["ready"]
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.agent is not None
        self.agent.send_signal(number)
        code = self.agent.wait(timeout=30)
        self.agent = None
        return code

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the agent do nothing inside the block."""
        assert self.agent is not None
        self.agent.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.agent.send_signal(signal.SIGCONT)

    def close(self) -> None:
        killed = self.agent is None
        if self.agent is not None:
            self.stop()
        self.let_go()
        if killed and self.layout.cluster.exists():  # an agent that was killed left its cgroup
            groups, _ = find_groups(self.layout.cluster)
            if groups is not None:
                groups.close()
        until(lambda: not self.processes(), f"the agent leaves no process: {self.processes()}", 10)

    def log(self) -> str:
        return (self.home / "agent.log").read_text()

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.layout.cluster_status.read_bytes()))

    @property
    def url(self) -> str:
        return str(self.status()["gateway_url"])

    def pid(self, component: str) -> int:
        record = read_record(self.layout.run / f"{component}.json")
        assert record is not None
        assert record.pid is not None
        return record.pid

    def processes(self) -> dict[str, int]:
        """Return the processes of this home that run, whoever knows of them, by the end of their command line."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                environ = (entry / "environ").read_bytes() if entry.name.isdecimal() else b""
                if f"FAIRLEAD_HOME={self.home}".encode() in environ.split(b"\0"):
                    found[(entry / "cmdline").read_bytes().decode().replace("\0", " ")] = int(entry.name)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return found

    def records(self) -> dict[str, bool]:
        """Return every record the agent wrote and whether its process runs."""
        return {path.stem: is_alive(record) for path in self.layout.run.glob("*.json") if (record := read_record(path))}

    def artifact(self, content: bytes) -> StoredArtifact:
        with self.artifacts.begin("model.onnx") as writer:
            writer.write(content)
            return writer.commit()

    def revision(
        self, number: int, weight: int, replicas: int = 1, *, content: bytes | None = None, **more: Any
    ) -> DesiredRevision:
        stored = self.artifact(content or model(number))
        name = f"digits-{number:05}"
        return DesiredRevision(name, "digits", str(number), stored.uri, stored.digest, replicas, weight, **more)

    def apply(self, generation: int, *revisions: DesiredRevision, affinity: SessionAffinity | None = None) -> None:
        self.driver.apply(Desired("default", "digits", generation, revisions, affinity=affinity))

    def apply_to(self, service: str, generation: int, revision: DesiredRevision, **more: Any) -> None:
        """Give another service of the namespace one revision."""
        own = replace(revision, name=f"{service}-00001", model_name=service)
        self.driver.apply(Desired("default", service, generation, (own,), **more))

    def until_known(self, service: str) -> None:
        """Wait until the gateway knows a service, whatever it answers."""
        until(lambda: self.request(f"/serving/default/{service}/v2")[0] != 404, f"{service} is routed")

    def observe(self) -> Observed:
        return self.driver.observe("default", "digits")

    def until_weights(self, **weights: int) -> Observed:
        """Wait until revision `digits-0000N` has the confirmed share given as `rN`."""
        wanted = {f"digits-0000{name[1:]}": weight for name, weight in weights.items()}

        def look() -> Observed | None:
            seen = self.observe()
            return seen if {each.name: each.weight_percent for each in seen.revisions} == wanted else None

        try:
            found = until(look, "")
        except pytest.fail.Exception:
            pytest.fail(f"weights {wanted} were not reached: {self.observe()}\n{self.log()}")
        assert found is not None
        return found

    def until_ready(self, replicas: int) -> Observed:
        """Wait until that many replicas are ready and no other is left."""

        def look() -> Observed | None:
            phases = [replica.phase for revision in self.observe().revisions for replica in revision.replicas]
            return self.observe() if phases == [ReplicaPhase.READY] * replicas else None

        found = until(look, f"{replicas} replicas are ready: {self.log()}")
        assert found is not None
        return found

    def request(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers with lower-case names, and body."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@dataclass
class Traffic:
    """Clients that send one request after the other, over connections that are kept, until they are stopped.

    They pause between two requests: what they are there to observe needs the processor as well.
    """

    url: str
    clients: int = 2
    pause_s: float = 0.02
    headers: Mapping[str, str] = field(default_factory=dict)  # of every request; for gRPC metadata
    outcomes: list[tuple[str, str]] = field(default_factory=list)  # revision or "", failure or ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> "Traffic":
        for send in (self._http, self._grpc) * self.clients:
            thread = threading.Thread(target=send)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def failures(self) -> list[str]:
        return [failure for _, failure in self.outcomes if failure]

    def by_revision(self) -> Counter[str]:
        return Counter(revision for revision, _ in self.outcomes if revision)

    def until_sent(self, more: int, within_s: float = 60.0) -> None:
        goal = len(self.outcomes) + more
        until(lambda: len(self.outcomes) >= goal, f"{more} more requests were answered", within_s)

    def _http(self) -> None:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        body = infer_json()
        while not self._stop.is_set():
            try:
                connection.request("POST", "/serving/default/digits/v2/models/digits/infer", body, self.headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                failure = "" if answer.status == 200 else f"HTTP {answer.status} {text}"
                self.outcomes.append((answer.headers.get("fairlead-revision", ""), failure))
            except (OSError, http.client.HTTPException) as error:
                self.outcomes.append(("", f"HTTP {error!r}"))
                connection.close()
            self._stop.wait(self.pause_s)
        connection.close()

    def _grpc(self) -> None:
        with grpc.insecure_channel(urlsplit(self.url).netloc) as channel:
            call = channel.unary_unary(INFER)
            message = infer_message()
            metadata = (("fairlead-service", "default/digits"), *self.headers.items())
            while not self._stop.is_set():
                try:
                    _, done = call.with_call(message, metadata=metadata, timeout=20)
                    answered = dict(done.initial_metadata())
                    self.outcomes.append((str(answered.get("fairlead-revision", "")), ""))
                except grpc.RpcError as error:
                    self.outcomes.append(("", f"gRPC {error.code()} {error.details()}"))
                self._stop.wait(self.pause_s)
