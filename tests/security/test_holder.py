"""What a model that has taken over its server can do with the process that holds it, and malformed messages to that."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.local.holder import wire
from integrations.clusters.local.holder.client import Holder
from integrations.sandbox import ability
from integrations.sandbox.policy import Mode
from tests.integrations._support.runtimes import Cluster, until
from tests.security._support.taken_over import ANSWER, BEGIN

# In the place of a runtime: looks for a way to the holder, whose process id it is given.
TAKEN_OVER = (
    BEGIN
    + """
def system(number, *arguments):
    if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
attempt("signal to the holder", lambda: os.kill(aims["holder"], 9))
attempt("its socket", lambda: os.open(f"/proc/{aims['holder']}/fd/{aims['channel']}", os.O_RDWR))
attempt("its memory", lambda: os.open(f"/proc/{aims['holder']}/mem", os.O_RDWR))
attempt("its environment", lambda: os.open(f"/proc/{aims['holder']}/environ", os.O_RDONLY))
attempt("a copy of its socket", lambda: system(438, os.pidfd_open(aims["holder"]), aims["channel"], 0))
types = []
for number in map(int, os.listdir("/proc/self/fd")):
    try:
        with socket.socket(fileno=os.dup(number)) as sock:
            types.append(int(sock.type))
    except OSError:
        pass
found["sockets"] = sorted(types)
sock = socket.socket(fileno=int(flags["http-address"].removeprefix("fd:")))
"""
    + ANSWER
    + """
with open(os.environ["HOME"] + "/found", "w") as file:
    json.dump(found, file)
with open(flags["port-file"], "w") as file:
    json.dump({"http": 1, "grpc": 1, "metrics": 1}, file)
threading.Event().wait()
"""
)


def test_a_model_that_took_over_its_server_has_no_way_to_the_holder(tmp_path: Path) -> None:
    if lacks := ability.shortfall(Mode.BEST):
        pytest.skip(lacks)
    cluster = Cluster(tmp_path)
    cluster.hold()
    assert cluster.holder is not None
    try:
        script = tmp_path / "script" / "taken.py"
        script.parent.mkdir()
        aims = {"holder": cluster.holder.pid, "channel": int(list(cluster.holder.args)[-1])}
        script.write_text(f"AIMS = {json.dumps(json.dumps(aims))}\n{TAKEN_OVER}")
        cluster.start(runtime=f"{sys.executable} {script}")
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        found = json.loads((cluster.layout.private / "default.digits-00001-0" / "found").read_text())
        assert found.pop("sockets") == [int(socket.SOCK_STREAM)] * 3, "those that it answers on, and no channel"
        assert set(found.values()) == {"PermissionError"}, found
    finally:
        cluster.close()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[socket.socket, Holder]]:
    cluster = Cluster(tmp_path)
    cluster.hold()
    assert cluster.channel is not None
    holder = Holder(cluster.channel)
    with (tmp_path / "log").open("ab") as output:
        holder.start("one", ["/bin/sleep", "60"], {}, [output.fileno()], None)
    yield cluster.channel, holder
    cluster.let_go()


MALFORMED: list[Any] = [
    pytest.param({}, id="nothing is asked"),
    pytest.param({"verb": "end", "of": {}}, id="an unknown verb"),
    pytest.param({"verb": [], "of": {}}, id="a verb that is a list"),
    pytest.param({"verb": "list", "of": []}, id="of a list"),
    pytest.param({"verb": "list", "of": None}, id="of nothing"),
    pytest.param({"verb": "forget", "of": {"name": "one"}}, id="to forget what runs"),
    pytest.param({"verb": "forget", "of": {"name": []}}, id="a name that is a list"),
    pytest.param({"verb": "signal", "of": {"name": "one", "number": 1 << 70}}, id="a signal without end"),
    pytest.param({"verb": "signal", "of": {"name": "one", "number": "KILL"}}, id="a signal that is a text"),
    pytest.param({"verb": "signal", "of": {"name": "other", "number": 9}}, id="a program that is not held"),
    pytest.param({"verb": "kill", "of": {"pid": 1}}, id="a process that is no child"),
    pytest.param({"verb": "kill", "of": {"pid": os.getpid()}}, id="the agent"),
    pytest.param({"verb": "start", "of": {"name": "a", "command": [], "env": {}, "note": 0}}, id="no command"),
    pytest.param({"verb": "start", "of": {"name": "a", "command": ["/bin/true"], "env": 3, "note": 0}}, id="no env"),
    pytest.param({"verb": "start", "of": {"name": "a", "command": ["\0"], "env": {}, "note": 0}}, id="a zero byte"),
]


def _settled(folder: Path) -> list[str]:
    links = []
    for each in folder.iterdir():
        with suppress(FileNotFoundError):
            links.append(str(each.readlink()))
    return [] if any("memfd" in link for link in links) else links


@pytest.mark.parametrize("message", MALFORMED)
def test_a_malformed_request_ends_nothing(held: tuple[socket.socket, Holder], message: dict[str, Any]) -> None:
    channel, holder = held
    for descriptors in ([], [channel.fileno()]):
        wire.send(channel, message, descriptors)
        assert [(each.name, each.status) for each in holder.programs()] == [("one", None)]


def test_what_is_no_message_ends_nothing_and_leaves_no_file_open(held: tuple[socket.socket, Holder]) -> None:
    channel, holder = held

    def files() -> list[str]:
        """Return what the holder has open, once it has sent its answer."""
        links = until(lambda: _settled(Path(f"/proc/{holder.pid}/fd")), "no message is open")
        return sorted(links)

    before = files()
    texts = [b"{", b"[]", b"3", b"\xff", b"[" * 100_000, b""]
    for content in texts:
        text = os.memfd_create("text")
        os.write(text, content)
        socket.send_fds(channel, [b"m"], [text, channel.fileno()])
        os.close(text)
    for content in (b"", b"m", b"m" * 1000):
        channel.send(content)
    reading, writing = os.pipe()
    socket.send_fds(channel, [b"m"], [reading])
    for end in (reading, writing):
        os.close(end)
    assert [(each.name, each.status) for each in holder.programs()] == [("one", None)]
    assert files() == before
