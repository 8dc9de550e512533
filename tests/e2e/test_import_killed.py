"""A worker that is killed in the middle of an import: another begins it anew, and nothing half-done stays."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.half_sent import HalfSent, half_sent
from tests.e2e.harness import Platform, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def place(models: Path) -> Iterator[HalfSent]:
    with half_sent(sorted(models.glob("*.onnx"))[0].read_bytes()) as place:
        yield place


def test_a_killed_workers_import_is_begun_anew(place: HalfSent, tmp_path: Path) -> None:
    platform = Platform(tmp_path / ".fairlead", variables={"FAIRLEAD_IMPORT_FROM": place.url, "NO_PROXY": "127.0.0.1"})
    platform.start()
    try:
        platform.fairlead("models", "push", f"{place.url}/digits.onnx", "--name", "digits")
        incoming = platform.home / "artifacts" / ".incoming"
        until(lambda: place.asked and any(incoming.glob("import-1-*/file")), what="the first half")
        before = platform.record("worker")["pid"]
        os.kill(before, signal.SIGKILL)
        place.go_on.set()
        until(lambda: platform.record("worker")["pid"] != before, what="another worker")

        def imported() -> bool:
            (row,) = json.loads(platform.fairlead("models", "imports", "digits", "-o", "json").stdout)
            assert row["status"] != "FAILED", row
            return (row["status"], row["version"], row["attempts"]) == ("IMPORTED", 1, 2)

        until(imported, within_s=60, what="the second attempt's end")
        assert place.asked == ["/digits.onnx"] * 2
        assert list(incoming.glob("import-*")) == []
    finally:
        platform.stop()
