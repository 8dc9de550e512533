"""`report`: what a payload tap put into a folder comes to a receiver, in time and in order, once, also at the end."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from serving_runtime.__main__ import main
from serving_runtime.telemetry.tap.sinks import Event, FolderSink
from tests.serving_runtime._support.event_receiver import Receiver, receiving

WITHIN_S = 30.0
COMMAND = [sys.executable, "-I", "-m", "serving_runtime", "report"]


@pytest.fixture(autouse=True)
def _signals_come() -> Iterator[None]:
    """Take back what the command does to the process in which a test calls it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "spool"
    made.mkdir()
    (tmp_path / "token").write_text("abc\n")
    return made


@contextmanager
def reporting(folder: Path, url: str) -> Iterator["subprocess.Popen[str]"]:
    arguments = [str(folder), f"--to={url}", f"--token-file={folder.parent / 'token'}"]
    with subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def record(folder: Path, *names: str) -> None:
    """Put each event into a file of its own."""
    sink = FolderSink(folder, 1 << 20)
    for name in names:
        events: list[Event] = [{"id": f"{name}:0", "data": "two\nlines"}, {"id": f"{name}:1", "data": {}}]
        sink.write(events)
        sink.flush()
    sink.close()


def ids(receiver: Receiver) -> list[str]:
    return [each["id"] for _, body in receiver.posts for each in json.loads(body)]


def test_what_is_there_and_what_comes_is_posted_with_the_token_and_removed(folder: Path, receiver: Receiver) -> None:
    record(folder, "a", "b")
    with reporting(folder, receiver.url):
        until(lambda: ids(receiver) == ["a:0", "a:1", "b:0", "b:1"])
        until(lambda: not list(folder.iterdir()))
        (folder.parent / "token").write_text("def")
        record(folder, "c")
        until(lambda: ids(receiver)[4:] == ["c:0", "c:1"])
    assert [headers["authorization"] for headers, _ in receiver.posts] == ["Bearer abc", "Bearer abc", "Bearer def"]
    assert {headers["content-type"] for headers, _ in receiver.posts} == {"application/cloudevents-batch+json"}


def test_what_came_last_is_sent_when_it_is_told_to_end(folder: Path, receiver: Receiver) -> None:
    with reporting(folder, receiver.url) as process:
        record(folder, "a")
        until(lambda: ids(receiver))
        receiver.answers = [503]
        record(folder, "b", "c")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0
    assert [*dict.fromkeys(ids(receiver))] == ["a:0", "a:1", "b:0", "b:1", "c:0", "c:1"]
    assert not list(folder.iterdir())


def test_what_cannot_be_taken_waits_and_what_is_refused_is_dropped(folder: Path, receiver: Receiver) -> None:
    receiver.answers = [503, 204, 409]
    record(folder, "a", "b", "c")
    with reporting(folder, receiver.url) as process:
        until(lambda: not list(folder.iterdir()))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=WITHIN_S)
    assert [name for name in ids(receiver) if name.endswith(":0")] == ["a:0", "a:0", "b:0", "c:0"]
    assert said.splitlines() == [
        f"fairlead-serve report: records wait until they are taken again: {receiver.url} answered 503",
        f"fairlead-serve report: records are dropped: {receiver.url} answered 409",
        "fairlead-serve report: records are taken again",
    ]


def test_without_a_token_and_a_receiver_it_goes_on_until_both_are_there(folder: Path, receiver: Receiver) -> None:
    (folder.parent / "token").unlink()
    record(folder, "a")
    with reporting(folder, receiver.url) as process:
        assert process.stderr is not None
        assert "No such file" in process.stderr.readline()
        (folder.parent / "token").write_text("abc")
        until(lambda: ids(receiver) == ["a:0", "a:1"])


def test_it_ends_in_time_where_nothing_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving_runtime.server.commands.report._CLOSE_S", 0.0)
    monkeypatch.setattr("serving_runtime.server.commands.report._ends", lambda _: True)
    record(folder, "a")
    assert main(["report", str(folder), "--to=http://127.0.0.1:1/"]) == 0
    assert len(list(folder.iterdir())) == 1


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none"), "--to=http://127.0.0.1:1/"]) == 2
    assert "No such file or directory" in capsys.readouterr().err
