"""What a model leaves where its records are fetched: `report` has the token that the model has not."""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving_runtime.server.commands.report import report
from serving_runtime.telemetry.tap.posting import HttpSink
from serving_runtime.telemetry.tap.sinks import FolderSink
from serving_runtime.telemetry.tap.spool import MAX_BATCH_BYTES, Spool
from tests.serving_runtime._support.event_receiver import Receiver, receiving

SECRET = "the token"
EVENT = {"id": "a:0", "data": {}}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    (tmp_path / "token").write_text(SECRET)
    return folder


def reported(folder: Path, receiver: Receiver) -> list[bytes]:
    """Return what is posted of all that is in the folder; it is read as a pod's last look does."""
    opened = Spool(folder)
    token = folder.parent / "token"
    report(opened, lambda: HttpSink(receiver.url, token, patience_s=0), lambda _: True)
    opened.close()
    assert all(headers["authorization"] == f"Bearer {SECRET}" for headers, _ in receiver.posts)
    return [body for _, body in receiver.posts]


def recorded(folder: Path) -> None:
    sink = FolderSink(folder, 1 << 20)
    sink.write([EVENT])
    sink.flush()
    sink.close()


@pytest.mark.parametrize("target", ["token", "../token", "missing", "."])
def test_a_link_brings_nothing_of_what_it_leads_to(spool: Path, receiver: Receiver, target: str) -> None:
    (spool / "0.jsonl").symlink_to(target if target != "token" else spool.parent / "token")
    recorded(spool)
    assert [json.loads(body) for body in reported(spool, receiver)] == [[EVENT]]
    assert list(spool.iterdir()) == []
    assert (spool.parent / "token").read_text() == SECRET


def test_a_file_through_a_linked_folder_is_not_read(spool: Path, receiver: Receiver) -> None:
    (spool / "0.jsonl").mkdir()
    (spool / "0.jsonl" / "1.jsonl").symlink_to(spool.parent / "token")
    (spool / "1").symlink_to(spool.parent)
    recorded(spool)
    assert [json.loads(body) for body in reported(spool, receiver)] == [[EVENT]]


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_holds_nothing_up(spool: Path, receiver: Receiver, kind: str) -> None:
    place = spool / "0.jsonl"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    else:
        place.symlink_to("/dev/zero")
    recorded(spool)
    assert [json.loads(body) for body in reported(spool, receiver)] == [[EVENT]]
    assert list(spool.iterdir()) == []


def test_a_file_without_end_is_dropped_unread(spool: Path, receiver: Receiver) -> None:
    with (spool / "0.jsonl").open("wb") as file:
        file.truncate(1 << 40)
    recorded(spool)
    assert [json.loads(body) for body in reported(spool, receiver)] == [[EVENT]]
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize(("size", "is_taken"), [(MAX_BATCH_BYTES - 2, True), (MAX_BATCH_BYTES - 1, False)])
def test_a_batch_is_what_the_control_plane_takes_at_most(
    spool: Path, receiver: Receiver, size: int, is_taken: bool
) -> None:
    (spool / "0.jsonl").write_bytes(b"x" * size + (b"\n" if is_taken else b""))
    assert [len(body) for body in reported(spool, receiver)] == ([MAX_BATCH_BYTES] if is_taken else [])


def test_folders_without_number_take_no_memory_and_no_time(spool: Path, receiver: Receiver) -> None:
    for number in range(5000):
        (spool / f"{number}.jsonl").mkdir()
    began = time.process_time()
    assert len(Spool(spool).names()) == 0
    assert time.process_time() - began < 1.0
