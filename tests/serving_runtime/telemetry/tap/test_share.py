"""A share that a file may change."""

import logging
from pathlib import Path

import pytest

from serving_runtime.telemetry.tap.share import Share


def test_a_share_without_a_file_stays() -> None:
    share = Share(0.3)
    share.look()
    assert share.now == 0.3


def test_the_file_decides_and_none_is_0(tmp_path: Path) -> None:
    file = tmp_path / "share"
    share = Share(1.0, file)
    assert share.now == 0
    for text, expected in (("0.25\n", 0.25), ("1", 1.0), ("0", 0.0)):
        new = tmp_path / "new"
        new.write_text(text)
        new.replace(file)
        share.look()
        assert share.now == expected
    file.write_text("1")
    share.look()
    file.unlink()
    share.look()
    assert share.now == 0


@pytest.mark.parametrize("text", ["half", "", "1.5", "-1", "nan"])
def test_a_file_that_holds_no_share_records_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    file = tmp_path / "share"
    file.write_text("1")
    share = Share(1.0, file)
    file.write_text(text)
    with caplog.at_level(logging.ERROR):
        share.look()
        share.look()
    assert share.now == 0
    assert len(caplog.records) == 1
    assert "is not a share from 0 to 1" in caplog.text
