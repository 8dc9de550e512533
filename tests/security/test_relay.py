"""A replica with a logger or traces reaches those and nothing else, and the relay to them is no way elsewhere."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.base import Logged, Logger
from integrations.relay import start
from integrations.relay.program import CONNECTIONS, Route
from integrations.relay.start import Target
from integrations.sandbox import ability
from integrations.sandbox.command import command
from integrations.sandbox.policy import Mode, NetworkAccess, Sandbox
from serving_runtime.shared.egress import networks
from tests.integrations._support.relays import connected, received, relaying, serving
from tests.integrations._support.runtimes import ROOT, Cluster, until
from tests.serving_runtime._support.event_receiver import receiving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what the sandbox is made of is Linux's")

# Stands for a runtime that a model has taken over: it tries what its replica could reach, and says what it did.
ATTACKER = """
import json, os, socket, sys, time
if "--help" in sys.argv:
    print("--payload-logger-socket, opentelemetry,socket=, fd:N")
    sys.exit()
asked = json.loads(ASKED)
flags = dict(word.partition("=")[::2] for word in sys.argv if word.startswith("--"))
relay = flags["--payload-logger-socket"]
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as sock:
        sock.settimeout(5)
        sock.connect(address)
        sock.send(b"x")
def post():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(relay)
        sock.sendall(b"POST /events HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1\\r\\n\\r\\nx")
        if not sock.recv(100).startswith(b"HTTP/1.1 204"):
            raise OSError
def replace():
    os.unlink(relay)
attempts = {
    "logger": post,
    "logger by its port": lambda: connect(socket.AF_INET, ("127.0.0.1", asked["logger"])),
    "server": lambda: connect(socket.AF_INET, ("127.0.0.1", asked["port"])),
    "server over IPv6": lambda: connect(socket.AF_INET6, ("::ffff:127.0.0.1", asked["port"])),
    "socket file": lambda: connect(socket.AF_UNIX, asked["socket"]),
    "abstract socket": lambda: connect(socket.AF_UNIX, "\\0" + asked["abstract"]),
    "other relays": lambda: os.listdir(os.path.dirname(os.path.dirname(relay)))[1],
    "take the relay's place": replace,
}
for name, attempt in attempts.items():
    try:
        attempt()
        attempts[name] = "ok"
    except (OSError, IndexError) as error:
        attempts[name] = type(error).__name__
with open(os.environ["HOME"] + "/found.new", "w") as file:
    json.dump(attempts, file)
os.rename(file.name, os.environ["HOME"] + "/found")
time.sleep(600)
"""


def test_a_replica_with_a_logger_reaches_it_and_nothing_else(tmp_path: Path) -> None:
    if lacks := ability.shortfall(Mode.BEST):
        pytest.skip(lacks)
    home, program = tmp_path / "home", tmp_path / "runtime" / "attacker.py"
    home.mkdir()
    program.parent.mkdir()
    abstract, path = f"fairlead-test-{os.getpid()}", str(tmp_path / "socket")
    with ExitStack() as servers:
        for address in (path, f"\0{abstract}"):
            server = servers.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(address)
            server.listen()
        victim = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
        receiver = servers.enter_context(receiving())
        aims = {"logger": receiver.server_port, "port": victim.getsockname()[1], "socket": path, "abstract": abstract}
        program.write_text(f"ASKED = {json.dumps(aims)!r}\n{ATTACKER}")
        cluster = Cluster(home)
        try:
            cluster.start(runtime=f"{sys.executable} {program}", egress="127.0.0.0/8")
            more: dict[str, Any] = {"logger": Logger(receiver.url, Logged.ALL)}
            cluster.apply(1, cluster.revision(1, 100, replicas=2, **more))
            every = [cluster.layout.private / f"default.digits-00001-{index}" / "found" for index in range(2)]
            until(lambda: all(path.exists() for path in every), f"both have tried: {cluster.log()}")
            found = [json.loads(path.read_bytes()) for path in every]
        finally:
            cluster.close()
        assert len(receiver.posts) == 2
    for each in found:
        assert {name for name, outcome in each.items() if outcome == "ok"} == {"logger"}


def test_where_models_may_open_no_sockets_in_files_there_is_no_relay(tmp_path: Path) -> None:
    """Without namespaces, as in a container, whose own filter refuses `unshare`: the replica posts by itself then."""
    if lacks := ability.shortfall(Mode.BEST):
        pytest.skip(lacks)
    every = tuple(map(str, Path("/").iterdir()))
    outer = command([], sandbox=Sandbox(read=every, write=(str(tmp_path),), network=NetworkAccess.ALL))
    code = "from integrations.sandbox import ability; print(ability.opens_socket_files())"
    asked = [sys.executable, "-c", code]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "platform")}
    said = [
        subprocess.run([*before, *asked], capture_output=True, text=True, check=True, timeout=60, env=env).stdout
        for before in ([], outer)
    ]
    assert said == ["True\n", "False\n"]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        pytest.param("127.0.0.1", "", id="loopback"),
        pytest.param("localhost", "10.0.0.0/8", id="a name for it"),
        pytest.param("127.1", "0.0.0.0/0,::/0", id="another spelling, and a network that is too wide"),
        pytest.param("::ffff:127.0.0.1", "::/0", id="as IPv6"),
    ],
)
def test_a_relay_leads_to_no_address_that_is_not_allowed(tmp_path: Path, host: str, allowed: str) -> None:
    reached = threading.Event()
    with (
        serving(lambda _: reached.set()) as port,
        relaying(tmp_path, Target(host, port, networks(allowed))) as path,
        connected(path) as client,
    ):
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert received(client) == b""
    assert not reached.is_set()
    assert "which is not a public address" in (tmp_path / "relay.log").read_text()


@pytest.mark.parametrize("host", ["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"])
def test_a_relay_leads_to_no_metadata_whatever_is_allowed(tmp_path: Path, host: str) -> None:
    wide = networks("0.0.0.0/0,::/0,127.0.0.0/8,::/127")
    with relaying(tmp_path, Target(host, 80, wide)) as path, connected(path) as client:
        assert received(client) == b""
    assert f"{host!r} is at {host}, which is not a public address" in (tmp_path / "relay.log").read_text()


def test_a_name_that_changes_its_meaning_after_the_check_leads_where_it_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: the name is resolved once for each connection, which goes to the address that was checked."""
    answers = []
    known = socket.getaddrinfo

    def resolver(host: bytes, *arguments: Any, **more: Any) -> Any:
        assert host == b"rebinding.example"
        answers.append("127.0.0.1" if not answers else "169.254.169.254")
        return known(answers[-1], *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    with socket.create_server(("127.0.0.1", 0)) as server, closing(start.listening(tmp_path / "relay")) as listener:
        port = server.getsockname()[1]
        route = Route(listener, "rebinding.example", port, allowed="127.0.0.0/8", idle_s=1)
        first, second = route.connected(), route.connected()
        assert first is not None
        with first:
            assert first.getpeername() == ("127.0.0.1", port)
    assert (second, answers) == (None, ["127.0.0.1", "169.254.169.254"])


def test_a_flood_of_connections_is_bounded_and_passes(tmp_path: Path) -> None:
    lock, hold = threading.Lock(), threading.Event()
    now = most = 0

    def count(connection: socket.socket) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        hold.wait(30)
        connection.recv(1)
        connection.sendall(b"x")
        with lock:
            now -= 1

    with (
        serving(count) as port,
        relaying(tmp_path, Target("127.0.0.1", port, networks("127.0.0.0/8"))) as path,
        ExitStack() as flood,
    ):
        clients = []
        for _ in range(4 * CONNECTIONS):
            client = flood.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(30)
            client.connect(str(path))
            client.sendall(b"x")
            clients.append(client)
        until(lambda: now == CONNECTIONS, "as many as there may be")
        hold.set()
        for client in clients:
            assert client.recv(1) == b"x"
            client.close()
    assert most == CONNECTIONS
