"""Files that turn over, and folders that somebody empties."""

import json
import shutil
from pathlib import Path

import pytest

from serving_runtime.telemetry.tap.sinks import Event, FileSink, FolderSink, SinkError


def events(*ids: str) -> list[Event]:
    return [{"id": name, "data": "x" * 50} for name in ids]


def ids(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text().splitlines()]


def test_a_file_gets_a_line_per_event_behind_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "payloads.jsonl"
    for name in ("a", "b"):
        sink = FileSink(file, max_bytes=10_000)
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


def test_a_folder_gets_whole_files_in_order_of_time(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    sink = FolderSink(folder, max_bytes=10_000)
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
    sink.write([{"data": "x" * 2_000_000}])
    assert [file.stat().st_size for file in tmp_path.glob("*.jsonl")] == [2_000_012]
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
    (tmp_path / ".open").write_bytes(b'{"id": "a')
    sink = FolderSink(tmp_path, max_bytes=10_000)
    sink.write(events("b"))
    sink.flush()
    sink.close()
    assert [ids(file) for file in tmp_path.iterdir()] == [["b"]]
