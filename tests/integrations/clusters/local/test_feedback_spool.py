"""The spool of labels: bounds, and what another agent left."""

from pathlib import Path

import pytest

from integrations.clusters.local.feedback_spool import Batch, Spool, batches, waiting_files


def batch(service: str = "default/digits", labels: int = 1) -> Batch:
    return Batch(service, "ci", 12.5, [{"request_id": f"r{number}", "value": number} for number in range(labels)])


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.write([batch(), batch("vision/faces", 2)]) == ["", ""]
    assert spool.write([batch(labels=3)]) == [""]
    found = [each for path in waiting_files(tmp_path) for each in batches(path)]
    assert found == [batch(), batch("vision/faces", 2), batch(labels=3)]


def test_nothing_more_is_taken_at_a_bound_until_the_files_are_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most_bytes=3000, most_service_bytes=1000)
    first = spool.write([batch(labels=25), batch(labels=25), batch("vision/faces", 25)])
    assert first[0] == first[2] == ""
    assert first[1].startswith("the labels of service default/digits that wait for the control plane take")
    others = spool.write([batch(f"vision/{name}", 25) for name in "abc"])
    assert others[0] == ""
    assert "the labels of all services that wait" in others[2]
    again = Spool(tmp_path, most_bytes=3000, most_service_bytes=1000)
    assert again.write([batch(labels=25)])[0], "an agent that starts later counts what is there"
    for path in waiting_files(tmp_path):
        path.unlink()
    assert again.write([batch(labels=25)]) == [""]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "feedback")
    (tmp_path / "feedback").write_text("in the way")
    with pytest.raises(OSError, match="exist"):
        spool.write([batch()])
    (tmp_path / "feedback").unlink()
    assert spool.write([batch()]) == [""]
    assert [path.stat().st_mode & 0o777 for path in waiting_files(tmp_path / "feedback")] == [0o600]
