import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from integrations.clusters.local.state_files import StateFiles
from tests._support.small_disk import filled, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 256) as place:
        yield place


def test_what_a_full_disk_does_not_take_is_written_once_there_is_room(
    disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = StateFiles(disk)
    with filled(disk), caplog.at_level(logging.ERROR):
        for number in (1, 2):
            files.put_json(disk / "run" / "x.json", {"number": number})
            files.retry()
        assert not (disk / "run" / "x.json").exists()
        said = files.component
        assert said is not None
        assert (said.name, said.ready) == ("disk", False)
        assert said.message.startswith("FAIRLEAD_HOME/run/x.json cannot be written (No space left on device): ")
    assert caplog.text.count("cannot be written") == 1
    files.retry()
    assert (disk / "run" / "x.json").read_text() == '{\n "number": 2\n}'
    assert files.component is None
    assert [path.name for path in (disk / "run").iterdir()] == ["x.json"]


def test_a_file_that_is_there_is_overwritten_in_place_on_a_full_disk(disk: Path) -> None:
    files = StateFiles(disk)
    files.put(disk / "x", "a long first text")
    with filled(disk):
        files.put(disk / "x", "short")
        assert (disk / "x").read_text() == "short".ljust(len("a long first text"))
        files.put(disk / "x", "x" * 4000)
        assert (disk / "x").read_text() == "x" * 4000
        files.put(disk / "x", "y" * 5000)  # more than the block that it has
        assert (disk / "x").read_text() == "x" * 4000
        assert files.component is not None
    files.retry()
    assert (disk / "x").read_text() == "y" * 5000
    assert files.component is None


@pytest.mark.parametrize("how", ["garbage", "another file", "removed"])
def test_what_somebody_else_changed_is_written_again(tmp_path: Path, how: str) -> None:
    files = StateFiles(tmp_path)
    place = tmp_path / "status" / "x.json"
    files.put(place, "right")
    before = place.stat()
    files.mend()
    assert place.stat() == before  # nothing is written where nothing changed
    if how == "garbage":
        place.write_text("garbage")
    else:
        place.unlink()
    if how == "another file":
        place.write_text("wrong")
    files.mend()
    assert place.read_text() == "right"


def test_a_removed_file_does_not_come_again(tmp_path: Path) -> None:
    files = StateFiles(tmp_path)
    files.put(tmp_path / "x", "text")
    files.remove(tmp_path / "x")
    files.mend()
    files.retry()
    assert not (tmp_path / "x").exists()
