"""What pods bring is kept as files: for tapped revisions alone, once, bounded, and for a minute after the tap."""

import json
from pathlib import Path

import pytest

from common.errors import Conflict, Unavailable
from integrations.clusters.base import DesiredRevision, Tap
from integrations.clusters.kubernetes import payloads
from integrations.clusters.kubernetes.payloads import Payloads

POD = "digits-00001-abc-1"


def revision(number: int, *, tapped: bool) -> DesiredRevision:
    name = f"digits-{number:05}"
    return DesiredRevision(name, "digits", "1", "file:///a", "sha256:0", 1, 100, tap=Tap(50) if tapped else None)


def events(request_id: str, size: int = 0) -> bytes:
    common = {"requestid": request_id, "time": "2026-01-01T00:00:00+00:00", "modelversion": "1"}
    data = {"outputs": ["x" * size]}
    both = [{**common, "id": f"{request_id}:{number}", "data": data} for number in (0, 1)]
    return json.dumps(both, indent=1).encode()


def ids(kept: Payloads, cursor: str = "") -> list[str]:
    return [each.request_id for each in kept.take("default", "digits", cursor)[0]]


@pytest.fixture
def kept(tmp_path: Path) -> Payloads:
    made = Payloads(tmp_path / "payloads")
    made.switch("default", "digits", [revision(1, tapped=True)], now=0)
    return made


def bring(kept: Payloads, content: bytes, pod: str = POD) -> None:
    kept.keep("default", "digits", pod[: len("digits-00001")], pod, content)


def test_what_a_pod_brings_is_taken_as_its_revisions(kept: Payloads, tmp_path: Path) -> None:
    bring(kept, events("a"))
    bring(kept, events("b"))
    found, cursor = kept.take("default", "digits", "")
    assert [(each.request_id, each.revision, each.model_version) for each in found] == [
        ("a", "digits-00001", "1"),
        ("b", "digits-00001", "1"),
    ]
    assert kept.take("default", "digits", cursor) == ([], cursor)
    assert list(tmp_path.glob("payloads/*/*/*/*.jsonl")) == []


def test_nobody_else_may_read_it(kept: Payloads, tmp_path: Path) -> None:
    bring(kept, events("a"))
    service = tmp_path / "payloads" / "default.digits"
    folders = [service, service / "digits-00001", service / "digits-00001" / POD]
    assert {folder.stat().st_mode & 0o777 for folder in folders[1:]} == {0o700}
    assert (tmp_path / "payloads").stat().st_mode & 0o077 == 0


def test_the_same_again_is_kept_once(kept: Payloads) -> None:
    for _ in range(2):
        bring(kept, events("a"))
    assert ids(kept) == ["a"]


def test_nothing_is_kept_of_a_revision_that_is_not_tapped(kept: Payloads) -> None:
    with pytest.raises(Conflict, match="nothing of digits-00002 is recorded now"):
        bring(kept, events("a"), "digits-00002-abc-1")
    kept.switch("default", "digits", [revision(1, tapped=False)], now=0)
    with pytest.raises(Conflict, match="what pod digits-00001-abc-1 brings is dropped"):
        bring(kept, events("a"))
    assert ids(kept) == []


def test_what_was_recorded_waits_for_a_minute_after_the_tap(kept: Payloads, tmp_path: Path) -> None:
    bring(kept, events("a"))
    untapped = [revision(1, tapped=False)]
    for now in (100.0, 159.0):
        kept.switch("default", "digits", untapped, now)
        assert ids(kept) == ["a"]
    kept.switch("default", "digits", untapped, 160.0)
    kept.switch("default", "digits", untapped, 161.0)
    assert list(tmp_path.glob("payloads/*")) == []


def test_a_tap_that_comes_back_keeps_what_is_there(kept: Payloads) -> None:
    bring(kept, events("a"))
    kept.switch("default", "digits", [], 100.0)
    kept.switch("default", "digits", [revision(1, tapped=True)], 130.0)
    kept.switch("default", "digits", [], 165.0)
    assert ids(kept) == ["a"], "the minute begins anew"


def test_where_too_much_waits_the_oldest_goes(kept: Payloads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "MAX_REPLICA_BYTES", 5000)
    monkeypatch.setattr(payloads, "MAX_SERVICE_BYTES", 8000)
    for name in "abc":
        bring(kept, events(name, size=1000))
    assert ids(kept) == ["b", "c"], "of one pod"
    for name in "de":
        bring(kept, events(name, size=1000), "digits-00001-abc-2")
    assert ids(kept) == ["c", "d", "e"], "of all pods"


def test_one_that_is_too_large_by_itself_is_kept_alone(kept: Payloads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "MAX_REPLICA_BYTES", 100)
    bring(kept, events("a"))
    bring(kept, events("b"))
    assert ids(kept) == ["b"]


@pytest.mark.parametrize("broken", [b"[1, 2]", b"[{", b"[" * 100_000, b'[{"id": "a:0", "data": 1}]', b'[{"id": 5}]'])
def test_what_cannot_be_read_is_left_out(kept: Payloads, broken: bytes) -> None:
    bring(kept, broken)
    bring(kept, events("a"))
    assert ids(kept) == ["a"]


def test_a_deleted_service_leaves_nothing(kept: Payloads, tmp_path: Path) -> None:
    bring(kept, events("a"))
    kept.remove("default", "digits")
    assert list(tmp_path.glob("payloads/*")) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "payloads").write_text("no folder")
    with pytest.raises(Unavailable, match="what taps recorded cannot be read or written"):
        Payloads(tmp_path / "payloads").switch("default", "digits", [revision(1, tapped=True)], now=0)
