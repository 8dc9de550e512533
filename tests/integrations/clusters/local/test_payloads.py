"""What taps recorded is taken in files: in order, joined, bounded, and again until it was kept."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters import payloads
from integrations.clusters.base import Tap
from integrations.clusters.local.payloads import RevisionTap
from integrations.clusters.local.state_files import StateFiles
from integrations.clusters.payloads import take


def lines(*names: str, error: str = "") -> bytes:
    """Return a file with one exchange for each name."""
    found: list[dict[str, Any]] = []
    for name in names:
        common = {"requestid": name, "time": "2026-01-01T00:00:01.500000+00:00"}
        answered = {**common, "time": "2026-01-01T00:00:01.512500+00:00"}
        answer = {"data": {"error": "no"}, "errorcode": error} if error else {"data": {"outputs": [name]}}
        found.append({**common, "id": f"{name}:0", "data": {"inputs": [name]}})
        found.append({**answered, "id": f"{name}:1", "modelversion": "2", **answer})
    return b"".join(json.dumps(event).encode() + b"\n" for event in found)


def put(service: Path, replica: str, name: str, content: bytes) -> Path:
    file = service / replica / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def ids(service: Path, cursor: str) -> tuple[list[str], str]:
    found, cursor = take(service, cursor)
    return [exchange.request_id for exchange in found], cursor


def test_exchanges_join_a_request_and_its_first_answer(tmp_path: Path) -> None:
    put(tmp_path, "r-00002/0", "1", lines("a"))
    put(tmp_path, "r-00002/0", "2", lines("b", error="INTERNAL"))
    (good, bad), _ = take(tmp_path, "")
    assert (good.request_id, good.revision, good.model_version) == ("a", "r-00002", "2")
    assert (good.request, good.response, good.error_code) == ({"inputs": ["a"]}, {"outputs": ["a"]}, "")
    assert good.at == 1767225601.5
    assert good.took_ms == 12.5
    assert (bad.response, bad.error_code, bad.model_version) == ({"error": "no"}, "INTERNAL", "")


def test_further_answers_of_a_stream_are_left_out(tmp_path: Path) -> None:
    further = json.dumps({"id": "a:2", "requestid": "a", "time": "", "data": {}}).encode()
    put(tmp_path, "r/0", "1", lines("a") + further + b"\n")
    assert ids(tmp_path, "")[0] == ["a"]


def test_replicas_are_read_in_order_of_time_and_files_are_dropped_once_their_cursor_comes_back(tmp_path: Path) -> None:
    files = [put(tmp_path, "r-1/0", "1", lines("a")), put(tmp_path, "r-2/1", "2", lines("b"))]
    found, cursor = ids(tmp_path, "")
    assert found == ["a", "b"]
    assert ids(tmp_path, "") == (found, cursor)  # whoever could not keep it asks again
    assert all(file.exists() for file in files)
    later = put(tmp_path, "r-1/0", "3", lines("c"))
    assert ids(tmp_path, cursor)[0] == ["c"]
    assert [file.exists() for file in (*files, later)] == [False, False, True]


def test_nothing_new_leaves_the_cursor_as_it_is(tmp_path: Path) -> None:
    assert take(tmp_path / "nowhere", "") == ([], "")
    put(tmp_path, "r/0", "1", lines("a"))
    _, cursor = take(tmp_path, "")
    assert take(tmp_path, cursor) == ([], cursor)
    assert take(tmp_path, cursor) == ([], cursor)


def test_a_replica_that_is_gone_is_forgotten_and_may_come_back(tmp_path: Path) -> None:
    put(tmp_path, "r/0", "5", lines("a"))
    _, cursor = take(tmp_path, "")
    take(tmp_path, cursor)
    (tmp_path / "r" / "0").rmdir()
    _, cursor = take(tmp_path, cursor)
    assert cursor == ""
    put(tmp_path, "r/0", "3", lines("b"))
    assert ids(tmp_path, cursor)[0] == ["b"]


def test_a_call_is_bounded_and_the_next_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "MAX_CALL_BYTES", 600)
    for number in range(4):
        put(tmp_path, f"r/{number % 2}", str(number), lines(f"a{number}"))
    seen, cursor, calls = [], "", 0
    while (found := ids(tmp_path, cursor))[0]:
        seen, cursor, calls = seen + found[0], found[1], calls + 1
    assert seen == ["a0", "a1", "a2", "a3"]
    assert calls == 2


def test_one_large_file_is_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "MAX_CALL_BYTES", 10)
    put(tmp_path, "r/0", "1", lines("a", "b"))
    assert ids(tmp_path, "")[0] == ["a", "b"]


def test_an_event_that_cannot_be_read_costs_itself_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, "r/0", "1", b"{half\n5\n" + lines("a"))
    with caplog.at_level(logging.WARNING):
        assert ids(tmp_path, "")[0] == ["a"]
    assert caplog.text.count("cannot be read") == 2


def test_a_tap_is_switched_by_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    tap = RevisionTap(tmp_path / "service" / "r", StateFiles(tmp_path))
    share = tmp_path / "service" / "r" / "share"
    tap.switch(None, 0.0)
    assert not share.exists()
    tap.switch(Tap(12.5), 1.0)
    assert float(share.read_text()) == 0.125
    assert (share.stat().st_mode & 0o777, share.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    tap.switch(None, 2.0)
    assert not share.exists()


def test_what_nobody_takes_is_dropped_a_minute_after_the_tap_is_gone(tmp_path: Path) -> None:
    tap = RevisionTap(tmp_path / "r", StateFiles(tmp_path))
    tap.switch(Tap(100), 0.0)
    file = put(tmp_path, "r/0", "1", lines("a"))
    for now, there in ((1000.0, True), (1059.0, True), (1060.0, False)):
        tap.switch(None, now)
        assert file.exists() is there
