"""The file-system broker of the embedded mode."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection
from kombu.exceptions import ChannelError
from kombu.simple import SimpleQueue

from control_plane import broker
from tests._support.small_disk import filled, small_disk


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    broker.use()
    folders = {name: str(tmp_path / name) for name in ("data_folder_in", "control_folder", "processed_folder")}
    options = {**folders, "data_folder_out": folders["data_folder_in"], "polling_interval": 0.01}
    for folder in folders.values():
        Path(folder).mkdir()
    with Connection("filesystem://localhost", transport_options=options) as made:
        yield made


@pytest.fixture
def queue(connection: Connection, tmp_path: Path) -> Iterator[SimpleQueue]:
    # Kombu remembers for the whole process which queues it has declared, whatever the folder.
    with connection.SimpleQueue(tmp_path.name) as made:
        yield made


def test_a_full_disk_refuses_a_message_and_keeps_nothing_of_it(tmp_path: Path) -> None:
    broker.use()
    with small_disk(tmp_path / "disk", 128) as disk:
        folders = {name: str(disk / name) for name in ("data_folder_in", "control_folder", "processed_folder")}
        options = {**folders, "data_folder_out": folders["data_folder_in"]}
        for folder in folders.values():
            Path(folder).mkdir()
        with Connection("filesystem://localhost", transport_options=options) as made, made.SimpleQueue("full") as queue:
            with filled(disk), pytest.raises(ChannelError, match="No space left on device"):
                queue.put({"id": 1})
            assert list((disk / "data_folder_in").iterdir()) == []
            queue.put({"id": 2})
            assert queue.get(timeout=5).payload == {"id": 2}


def test_who_waits_long_for_a_message_is_asked_now_and_then_whether_he_still_wants_it(
    connection: Connection, queue: SimpleQueue
) -> None:
    """A worker looks between two waits whether it should stop."""
    queue.consumer.consume()
    with pytest.raises(TimeoutError):
        connection.drain_events(timeout=1_000_000)


def test_messages_arrive(queue: SimpleQueue) -> None:
    queue.put("a hint")
    message = queue.get()
    assert message.payload == "a hint"
    message.ack()
    with pytest.raises(Empty):
        queue.get(timeout=0.01)


def test_no_message_is_read_before_it_is_whole(queue: SimpleQueue, connection: Connection) -> None:
    long, count = "x" * 200_000, 100
    other = connection.clone()

    def send() -> None:
        with other, other.SimpleQueue(queue.queue.name) as sender:
            for _ in range(count):
                sender.put(long)

    sending = threading.Thread(target=send)
    sending.start()
    deadline = time.monotonic() + 60
    seen = 0
    while seen < count and time.monotonic() < deadline:
        with suppress(Empty):
            message = queue.get_nowait()
            assert message.payload == long
            message.ack()
            seen += 1
    sending.join()
    assert seen == count
