"""Files that turn over, and collectors that may refuse."""

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.telemetry.tap.sinks import FileSink, FolderSink, HttpSink, SinkError, open_sink


def events(*ids: str) -> list[bytes]:
    return [json.dumps({"id": name, "data": "x" * 50}).encode() for name in ids]


def ids(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text().splitlines()]


def test_a_file_gets_a_line_per_event_behind_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "payloads.jsonl"
    for name in ("a", "b"):
        sink = open_sink(file.as_uri(), max_file_bytes=10_000)
        sink.write(events(name))
        sink.close()
    assert ids(file) == ["a", "b"]


def test_a_file_that_is_full_makes_room_and_one_before_it_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "payloads.jsonl"
    sink = FileSink(file, max_bytes=200)
    for name in "abcdef":
        sink.write(events(name))
    sink.close()
    assert ids(file.with_name("payloads.jsonl.1")) == ["c", "d"]
    assert ids(file) == ["e", "f"]


class Collector(BaseHTTPRequestHandler):
    status = 204
    bodies: list[tuple[str, Any]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).bodies.append((self.headers["content-type"], json.loads(body)))
        self.send_response(type(self).status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.status, Collector.bodies = 204, []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/events"
        server.shutdown()
        thread.join()


def test_a_collector_gets_batches(collector: str) -> None:
    sink = HttpSink(collector)
    sink.write(events("a", "b"))
    sink.close()
    assert Collector.bodies == [
        ("application/cloudevents-batch+json", [json.loads(event) for event in events("a", "b")])
    ]


def test_a_collector_that_refuses_is_named_with_its_status(collector: str) -> None:
    Collector.status = 503
    sink = HttpSink(collector)
    with pytest.raises(SinkError, match="/events answered 503"):
        sink.write(events("a"))
    sink.close()


def test_a_collector_that_is_not_there_is_named() -> None:
    sink = HttpSink("http://127.0.0.1:1/events")
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:1/events"):
        sink.write(events("a"))
    sink.close()


@pytest.mark.parametrize("url", ["payloads.jsonl", "ftp://host/x", "file://elsewhere/x", "http:///x"])
def test_a_url_of_another_kind_is_refused_with_examples(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL such as file:///"):
        open_sink(url, 1)


def test_a_folder_gets_whole_files_in_order_of_time(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    sink = open_sink(f"{folder.as_uri()}/", max_file_bytes=10_000)
    sink.write(events("a"))
    assert list(folder.glob("*.jsonl")) == []  # others may come into the same file
    sink.write(events("b"))
    sink.flush()
    sink.write(events("c"))
    sink.flush()
    sink.flush()
    assert [ids(file) for file in sorted(folder.glob("*.jsonl"))] == [["a", "b"], ["c"]]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    sink.close()


def test_a_folder_hands_on_what_is_large_at_once(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path, max_bytes=10_000_000)
    sink.write([b"x" * 2_000_000])
    assert [file.stat().st_size for file in tmp_path.glob("*.jsonl")] == [2_000_001]
    sink.close()


def test_a_folder_that_nobody_empties_loses_what_is_oldest(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path, max_bytes=200)
    for name in "abcdef":
        sink.write(events(name))
        sink.flush()
    sink.close()
    assert [ids(file) for file in sorted(tmp_path.iterdir())] == [["e"], ["f"]]


def test_a_folder_goes_on_after_it_was_away(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    sink = FolderSink(folder, max_bytes=10_000)
    sink.write(events("a"))
    shutil.rmtree(folder)
    with pytest.raises(SinkError, match="spool"):
        sink.flush()
    sink.write(events("b"))
    sink.flush()
    sink.close()
    assert [ids(file) for file in folder.iterdir()] == [["b"]]


def test_half_a_file_of_a_server_that_was_killed_is_dropped(tmp_path: Path) -> None:
    (tmp_path / ".open").write_bytes(events("a")[0][:9])
    sink = FolderSink(tmp_path, max_bytes=10_000)
    sink.write(events("b"))
    sink.flush()
    sink.close()
    assert [ids(file) for file in tmp_path.iterdir()] == [["b"]]
