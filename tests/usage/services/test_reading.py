"""Reading of the access log: each line counts once, wherever the process is killed; real database, real files."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from integrations.clusters.base import CONSOLE
from integrations.clusters.local.access_log_files import AccessLogFiles
from usage.models import HourlyUsage, LogPosition, LogReading
from usage.services import reading
from usage.services.reading import access_log_read
from usage.services.retention import KEPT_FOR, usage_forget

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
LINE = {
    "time": "2026-01-31T12:10:00.123Z",
    "service": "default/digits",
    "upstream": "default/digits-00001/http",
    "key": "ci",
    "team": "fraud",
    "token_id": "t1",
    "user": None,
    "path": "/v2/models/digits/infer",
    "status": 200,
    "grpc_status": None,
    "bytes_in": 10,
    "bytes_out": 20,
    "model_us": 1500,
    "rows": "4",
}


class Killed(BaseException):
    """What kill -9 is to the code: nothing after it happens."""


@pytest.fixture
def log(tmp_path: Path) -> AccessLogFiles:
    files = AccessLogFiles(tmp_path / "access-log", segment_bytes=1)
    files.begin()
    return files


def write(path: Path, *lines: dict[str, Any] | str, end: str = "\n") -> None:
    """Append lines as Envoy does; the request's id makes each one its own."""
    texts = [
        each if isinstance(each, str) else json.dumps({"request_id": os.urandom(8).hex(), **LINE, **each})
        for each in lines
    ]
    with path.open("a") as file:
        file.write("\n".join(texts) + end)


def read(log: AccessLogFiles, now: datetime = NOW) -> int:
    return access_log_read(folder=log.current.parent, now=now)


def requests() -> int:
    return sum(HourlyUsage.objects.values_list("requests", flat=True))


def rotate(log: AccessLogFiles) -> None:
    assert log.set_aside()
    log.current.touch()


def test_lines_are_summed_by_hour_and_caller(log: AccessLogFiles) -> None:
    write(log.current, {}, {"status": 500}, {"grpc_status": 5}, {"time": "2026-01-31T13:00:00Z"})
    write(log.current, {"key": None, "team": None, "token_id": None}, {"path": "/v2/health/ready"}, {"service": None})
    write(log.current, {"upstream": None, "status": 403}, {"key": CONSOLE, "token_id": "t9", "team": None})
    assert read(log) == 9
    first = HourlyUsage.objects.get(key="ci", hour=datetime(2026, 1, 31, 12, tzinfo=UTC), revision="digits-00001")
    counts = (first.requests, first.errors, first.rows, first.bytes_in, first.bytes_out, first.model_us)
    assert counts == (3, 2, 4, 30, 60, 4500)
    assert (first.namespace, first.service, first.team, first.token_id) == ("default", "digits", "fraud", "t1")
    assert HourlyUsage.objects.get(revision="").errors == 1
    assert HourlyUsage.objects.get(key=CONSOLE).token_id == ""
    assert requests() == 7


def test_a_half_line_waits_and_no_line_counts_again(log: AccessLogFiles) -> None:
    write(log.current, {}, json.dumps(LINE)[:40], end="")
    assert (read(log), read(log)) == (1, 0)
    write(log.current, json.dumps(LINE)[40:], {})
    assert (read(log), read(log)) == (2, 0)
    assert requests() == 3
    rotate(log)
    write(log.current, {})
    assert (read(log), requests()) == (1, 4)
    assert [each.path for each in log.files()] == [log.current]


def test_a_bad_line_is_counted_and_skipped(log: AccessLogFiles, caplog: pytest.LogCaptureFixture) -> None:
    write(log.current, {}, "nothing", {})
    assert (read(log), requests(), LogReading.objects.get().bad) == (2, 2, 1)
    assert "1 lines" in caplog.text


def test_the_rest_of_a_killed_gateways_file_is_skipped(log: AccessLogFiles) -> None:
    write(log.current, {}, json.dumps(LINE)[:40], end="")
    log.begin()
    write(log.current, {})
    assert (read(log), requests(), LogReading.objects.get().bad) == (2, 2, 1)
    assert len(list(log.files())) == 1


def test_a_file_that_is_renamed_without_a_newer_one_is_kept(log: AccessLogFiles) -> None:
    write(log.current, {})
    assert log.set_aside()
    (aside,) = log.files()
    assert (read(log), aside.path.exists()) == (1, True)
    write(aside.path, {})  # Envoy has it open still
    log.current.touch()
    assert (read(log), requests(), aside.path.exists()) == (1, 2, False)


def test_the_same_inode_again_is_another_file(log: AccessLogFiles) -> None:
    for _ in range(3):
        write(log.current, {}, {})
        read(log)
        log.current.unlink()
        log.current.touch()
    assert requests() == 6


def test_killed_before_any_step_each_line_counts_once(log: AccessLogFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query, commit and deletion is the last one once; then the next process reads on."""
    monkeypatch.setattr(reading, "PIECE_BYTES", 900)  # two lines
    killed, written = 0, 0
    for step in range(200):
        write(log.current, {}, {"key": f"k{step % 3}"}, {"status": 500})
        rotate(log)
        write(log.current, {}, {"bytes_in": step})
        written += 5
        try:
            with killed_at(step, monkeypatch):
                read(log)
        except Killed:
            killed += 1
        else:
            break
        connection.close()
    read(log)
    assert killed > 15
    assert requests() == written
    assert LogReading.objects.get().lines == written
    assert read(log) == 0


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    def query(execute: Callable[..., Any], *arguments: Any) -> Any:
        count()
        return execute(*arguments)

    def unlink(path: Path, **named: Any) -> None:
        count()
        os.remove(path)  # noqa: PTH107 - Path.unlink is this function
        count()

    commit = connection.commit

    def commits() -> None:
        try:
            count()
        except Killed:
            connection.rollback()  # as the server does once the connection is gone
            raise
        commit()
        count()

    with monkeypatch.context() as patch, connection.execute_wrapper(query):
        patch.setattr(Path, "unlink", unlink)
        patch.setattr(connection, "commit", commits)
        yield


def test_two_readers_count_each_line_once(log: AccessLogFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second reader reads the same piece before the first one stores it."""
    write(log.current, {}, {})
    rotate(log)
    write(log.current, {})
    store, nested = reading._store, []

    def after_another(*arguments: Any) -> bool:
        if not nested:
            nested.append(0)
            nested[0] = read(log)
        return store(*arguments)

    monkeypatch.setattr(reading, "_store", after_another)
    read(log)
    assert (nested, requests()) == ([3], 3)
    read(log)
    assert requests() == 3


def test_unread_lines_are_deleted_only_for_the_disk_and_counted(tmp_path: Path) -> None:
    log = AccessLogFiles(tmp_path / "access-log", segment_bytes=1, kept_bytes=1500)
    log.begin()
    for _ in range(5):
        write(log.current, {}, {})
        rotate(log)
    size = log.files().__next__().path.stat().st_size
    log.limit()
    left = [each for each in log.files() if each.path != log.current]
    assert len(left) == 1500 // size < 5
    assert read(log) == len(left) * 2
    assert LogReading.objects.get().dropped_bytes == (5 - len(left)) * size
    assert (log.current.parent.stat().st_mode & 0o777, log.current.stat().st_mode & 0o077) == (0o700, 0o044)


def test_usage_is_kept_for_thirteen_months(log: AccessLogFiles) -> None:
    write(log.current, {}, {"time": "2026-02-01T00:00:00Z"})
    read(log)
    usage_forget(now=datetime(2026, 1, 31, 13, tzinfo=UTC) + KEPT_FOR)
    assert [each.hour.month for each in HourlyUsage.objects.all()] == [2]
    assert not LogPosition.objects.exists()
