"""What a model that has taken over its server can do with the sockets of its replica, and with those of others."""

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from integrations.clusters.local.agent.sockets import ENDPOINTS, ReplicaSockets, replicas_folder
from integrations.clusters.local.confinement import REPLICA_LIMITS, confined, network_of, private
from integrations.clusters.local.files import Layout
from integrations.metrics.pages import read, unix_url
from integrations.sandbox import ability
from integrations.sandbox.command import command
from integrations.sandbox.policy import Launch, Mode, NetworkAccess, Sandbox
from tests.integrations._support.runtimes import RUNTIME, Cluster, infer_json, until
from tests.security._support.taken_over import ANSWER, BEGIN
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what the sandbox is made of is Linux's")

INFER = "/serving/default/digits/v2/models/digits/infer"

# In the place of a runtime: attacks `AIMS`, writes what came of it into its own folder, and a port file that names a
# port of somebody else; then it answers all that comes to its socket.
TAKEN_OVER = (
    BEGIN
    + """
def connect(family, address):
    with socket.socket(family) as sock:
        sock.settimeout(5)
        sock.connect(address)
attempt("server of the machine", lambda: connect(socket.AF_INET, ("127.0.0.1", aims["port"])))
attempt("port of the machine", lambda: socket.create_server(("127.0.0.1", aims["port"])).close())
attempt("Envoy's admin page", lambda: connect(socket.AF_UNIX, aims["admin"]))
attempt("folder of sockets", lambda: os.listdir(aims["sockets"]))
sock = socket.socket(fileno=int(flags["http-address"].removeprefix("fd:")))
own = sock.getsockname()
attempt("own socket's file", lambda: os.unlink(own))
attempt("link in its place", lambda: os.symlink(aims["admin"], own))
"""
    + ANSWER
    + """
with open(os.environ["HOME"] + "/found", "w") as file:
    json.dump(found, file)
with open(flags["port-file"], "w") as file:
    json.dump({"http": aims["port"], "grpc": aims["port"], "metrics": aims["port"]}, file)
threading.Event().wait()
"""
)


@pytest.fixture(autouse=True)
def whole() -> None:
    """Skip where this machine cannot give all of the sandbox."""
    if lacks := ability.shortfall(Mode.BEST):
        pytest.skip(lacks)


def listening(pid: int, table: str) -> set[str]:
    """Return the TCP sockets of a process that a table of a network lists as listening, by their inodes."""
    rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
    held = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.add(str(link.readlink()))
    return {row[9] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held}


def test_a_taken_over_server_finds_no_way_to_other_sockets(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    program = tmp_path / "program" / "taken_over.py"
    program.parent.mkdir()
    victim = socket.create_server(("127.0.0.1", 0))
    try:
        aims = {
            "port": victim.getsockname()[1],
            "admin": str(cluster.layout.envoy / "admin.sock"),
            "sockets": str(replicas_folder(cluster.layout)),
        }
        program.write_text(TAKEN_OVER.replace("AIMS", repr(json.dumps(aims))))
        cluster.start(runtime=f"{sys.executable} {program}")
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        cluster.until_weights(r1=100)
        assert (cluster.layout.envoy / "admin.sock").is_socket()
        [private] = cluster.layout.private.iterdir()
        found = json.loads((private / "found").read_text())
        assert {name for name, outcome in found.items() if outcome == "ok"} == {
            "port of the machine"
        }  # its own network
        # Its port file names the victim's port, and it is the replica's socket that is asked all the same.
        status, _, body = cluster.request(INFER, "POST", infer_json())
        assert (status, body) == (200, b"{}")
        victim.settimeout(0)
        with pytest.raises(BlockingIOError):
            victim.accept()
    finally:
        victim.close()
        cluster.close()


def test_a_replica_has_no_port_on_the_machine(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=RUNTIME)
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        pid = cluster.pid("default.digits-00001-0")
        assert Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
        for network in ("/proc/net", f"/proc/{pid}/net"):
            assert listening(pid, f"{network}/tcp") | listening(pid, f"{network}/tcp6") == set()
        envoy = cluster.pid("gateway")
        assert listening(envoy, "/proc/net/tcp")  # the same look finds the gateway's
    finally:
        cluster.close()


def test_another_replica_sees_none_of_the_sockets(tmp_path: Path) -> None:
    sockets = ReplicaSockets(Layout(tmp_path / "cluster"), "default.digits-00001-0")
    own = tmp_path / "own"
    own.mkdir()
    code = (
        "import os, socket, sys\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        with socket.socket(socket.AF_UNIX) as sock: sock.connect(path)\n"
        "        print('reached', path)\n"
        "    except OSError as error: print(type(error).__name__)\n"
        "    print(os.path.lexists(path))\n"
    )
    try:
        for name in ("http", "grpc", "metrics"):
            with socket.socket(socket.AF_UNIX) as attempt, pytest.raises(ConnectionRefusedError):
                attempt.connect(str(sockets.path(name)))  # it is there, outside
        paths = [str(sockets.path(name)) for name in ("http", "grpc", "metrics")]
        program = [sys.executable, "-I", "-c", code, *paths]
        network = network_of(connects=False, posts=False, on_sockets=True)
        wall = confined(program, read=[], write=[own], network=network)
        done = outcome(command(program, sandbox=wall, folder=str(own)))
        assert done.split() == ["FileNotFoundError", "False"] * 3
    finally:
        sockets.close()
        sockets.remove()


def test_without_namespaces_a_server_answers_on_sockets_and_listens_nowhere_else(tmp_path: Path) -> None:
    """As in a container: the sandbox lets it make no Unix socket, and it takes the agent's."""
    model = tmp_path / "models" / "mlp" / "1" / "model.onnx"
    onnx_models.mlp(model)
    own = tmp_path / "own"
    own.mkdir()
    sockets = ReplicaSockets(Layout(tmp_path / "cluster"), "default.digits-00001-0")
    runtime = [sys.executable, "-I", "-m", "serving_runtime"]
    program = [*runtime, f"--model-repository={tmp_path / 'models'}", f"--port-file={own / 'ports'}"]
    program += [f"--{name}-address=fd:{number}" for name, number in zip(ENDPOINTS, sockets.numbers, strict=True)]
    network = network_of(connects=False, posts=False, on_sockets=True)
    wall = confined(program, read=[tmp_path / "models"], write=[own], network=network)
    every = tuple(map(str, Path("/").iterdir()))
    outer = command([], sandbox=Sandbox(read=every, write=(str(tmp_path),), network=NetworkAccess.ALL))
    inside = command(program, sandbox=wall, limits=REPLICA_LIMITS, folder=str(own))
    inside[4] = Launch(os.getpid(), sandbox=wall).to_json()  # its parent is the outer launcher's process
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*outer, *inside],
            stdout=log,
            stderr=log,
            pass_fds=sockets.numbers,
            env={"PATH": os.environ["PATH"], **private(own)},
        )
    sockets.close()
    try:
        until(lambda: (own / "ports").exists() or process.poll() is not None, "it has started")
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert "nv_cpu_utilization" in read(unix_url(sockets.path("metrics"), "/metrics"))
        assert read(unix_url(sockets.path("http"), "/v2/health/ready")) == '{"ready":true}'
        listens = listening(process.pid, "/proc/net/tcp") | listening(process.pid, "/proc/net/tcp6")
        assert listens == set()
    finally:
        process.terminate()
        process.wait(60)
        sockets.remove()


def outcome(program: list[str]) -> str:
    done = subprocess.run(
        program, capture_output=True, text=True, check=False, timeout=60, env={"PATH": os.environ["PATH"]}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
