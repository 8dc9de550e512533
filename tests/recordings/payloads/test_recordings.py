"""A recording from its start to its end: what turns of the reconciler keep, and what is left where one dies."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from clusters.models import Cluster
from common.errors import Conflict, InvalidInput, NotFound, Unavailable
from deployments.models import InferenceService
from deployments.reconcile import reconciler
from deployments.services import service_delete
from events.models import Event
from integrations.clusters.base import Exchange, Tap
from recordings.models import Recording
from recordings.reconcile import payload_files, payloads
from recordings.services.recordings import (
    RecordingOrder,
    recording_delete,
    recording_start,
    recording_stop,
    recordings_forget,
)
from serving_runtime.shared.sampling import is_sampled
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform

CONSENT = "Our terms of use, section 4, allow us to try new versions on requests."
SERVICE = {"namespace": "default", "name": "digits"}


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.RECORDINGS_FOLDER = tmp_path / "recordings"
    return tmp_path / "recordings"


class Recorded:
    """A live service that is recorded."""

    def __init__(self, platform: Platform, **order: Any) -> None:
        self.platform = platform
        platform.live()
        self.id = self.start(**order).pk
        platform.turn()

    def start(self, **order: Any) -> Recording:
        asked = RecordingOrder(**{"consent": CONSENT, **order})
        return recording_start(**SERVICE, order=asked, actor="alice", now=self.platform.clock())

    def tell(self, *names: str, revision: str = "digits-00001", after_s: float = 1.0) -> None:
        """Let the taps have recorded requests."""
        at = self.platform.clock().timestamp() + after_s
        told = self.platform.cluster.recorded.setdefault(("default", "digits"), [])
        told += [Exchange(name, revision, "1", at, {"inputs": [name]}, {"outputs": [name]}) for name in names]

    def row(self) -> Recording:
        return Recording.objects.get(pk=self.id)

    def ids(self) -> list[str]:
        return [each.request_id for each in payload_files.read(self.id, length=self.row().bytes)]

    def taps(self) -> dict[str, Tap | None]:
        desired = self.platform.cluster.desired["default", "digits"]
        return {revision.name: revision.tap for revision in desired.revisions}


@pytest.fixture
def recorded(platform: Platform) -> Recorded:
    return Recorded(platform)


def test_stable_is_tapped_only_while_a_recording_runs(platform: Platform) -> None:
    recorded = Recorded(platform, share_percent=12.5)
    assert recorded.taps() == {"digits-00001": Tap(12.5)}
    recording_stop(**SERVICE, recording_id=recorded.id, actor="bob", now=platform.clock())
    platform.turn()
    assert recorded.taps() == {"digits-00001": None}


def test_turns_keep_what_came_in_order_and_each_once(recorded: Recorded) -> None:
    recorded.tell("a", "b")
    recorded.platform.turn()
    recorded.platform.turn()
    recorded.tell("c")
    recorded.platform.turn()
    assert recorded.ids() == ["a", "b", "c"]
    assert recorded.row().requests == 3
    (first, *_) = payload_files.read(recorded.id, length=recorded.row().bytes)
    assert (first.request, first.response, first.model_version) == ({"inputs": ["a"]}, {"outputs": ["a"]}, "1")


def test_what_others_answered_and_what_came_before_is_left_out(recorded: Recorded) -> None:
    recorded.tell("canary", revision="digits-00002")
    recorded.tell("early", after_s=-3600)
    recorded.tell("kept")
    recorded.platform.turn()
    assert recorded.ids() == ["kept"]


def test_only_the_share_is_kept_that_was_agreed_to(platform: Platform) -> None:
    """Others may want more of the same requests, such as a comparison."""
    recorded = Recorded(platform, share_percent=30)
    names = [f"request-{number}" for number in range(200)]
    recorded.tell(*names)
    platform.turn()
    assert recorded.ids() == [name for name in names if is_sampled(name, 0.3)]
    assert 30 < len(recorded.ids()) < 90


def test_it_ends_with_the_requests_that_were_asked_for(platform: Platform) -> None:
    recorded = Recorded(platform, max_requests=3)
    recorded.tell("a", "b", "c", "d")
    platform.turn()
    row = recorded.row()
    assert (row.requests, recorded.ids()) == (3, ["a", "b", "c"])
    assert row.ended_at == platform.clock()
    assert row.end_reason == "it reached its limit of 3 requests"
    assert "RecordingEnded" in platform.events()
    assert recorded.taps() == {"digits-00001": None}


def test_it_ends_with_the_bytes_that_were_asked_for(platform: Platform) -> None:
    recorded = Recorded(platform, max_bytes=100)
    recorded.tell("a")
    platform.turn()
    assert recorded.row().end_reason == f"it has {recorded.row().bytes} bytes, and its limit is 100"


def test_files_are_sealed_and_their_owners_only(recorded: Recorded, folder: Path, settings: Settings) -> None:
    recorded.tell("a-very-secret-request")
    recorded.platform.turn()
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    assert b"secret" not in file.read_bytes()
    settings.SECRET_KEY = "another" * 10
    with pytest.raises(Unavailable, match="cannot be read with the present FAIRLEAD_SECRET_KEY"):
        recorded.ids()


def test_nothing_of_a_request_is_in_events_or_in_the_audit_log(recorded: Recorded) -> None:
    recorded.tell("a-very-secret-request")
    recorded.platform.turn()
    recording_stop(**SERVICE, recording_id=recorded.id, actor="bob", now=recorded.platform.clock())
    told = [*Event.objects.values_list("message", flat=True), *map(str, AuditEntry.objects.values())]
    assert told
    assert not [text for text in told if "secret" in text]


@pytest.mark.parametrize("where", ["collect", "record"])
def test_a_turn_that_dies_is_made_good_by_the_next(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Between taking and keeping, and between the file and its row."""
    recorded.tell("a")
    recorded.platform.turn()
    recorded.tell("b")

    def dies(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(payloads.Recordings, where, dies)
        with pytest.raises(SystemExit):
            recorded.platform.turn()
    recorded.platform.clock.go_on(60)
    recorded.platform.turn()
    assert recorded.ids() == ["a", "b"]
    assert recorded.row().requests == 2


def test_a_turn_that_was_overtaken_keeps_nothing_twice(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.tell("a")
    collect = payloads.Recordings.collect

    def overtaken(*arguments: Any) -> Any:
        InferenceService.objects.update(changes=InferenceService.objects.get().changes + 1)
        return collect(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(payloads.Recordings, "collect", overtaken)
        assert recorded.platform.turn() is reconciler.Outcome.OVERTAKEN
    assert recorded.row().requests == 0
    recorded.platform.turn()
    assert recorded.ids() == ["a"]


def test_a_cluster_that_cannot_say_what_was_recorded_holds_nothing_up(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.tell("a")

    def away(*_: object) -> None:
        raise Unavailable("no such folder")

    with monkeypatch.context() as patched:
        patched.setattr(type(recorded.platform.cluster), "exchanges", away)
        assert recorded.platform.turn() is reconciler.Outcome.DONE
    recorded.platform.turn()
    assert recorded.ids() == ["a"]


def test_a_disk_that_is_full_loses_requests_and_not_the_service(
    recorded: Recorded, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.parent.joinpath("recordings").write_text("in the way")
    recorded.tell("a")
    assert recorded.platform.turn() is reconciler.Outcome.DONE
    assert "1 requests are not kept" in caplog.text
    assert recorded.row().requests == 0


def test_everything_goes_when_its_time_is_over_even_while_it_runs(recorded: Recorded, folder: Path) -> None:
    recorded.tell("a")
    recorded.platform.turn()
    almost = recorded.row().expires_at - timedelta(seconds=1)
    assert recordings_forget(now=almost) == 0
    assert recordings_forget(now=almost + timedelta(seconds=1)) == 1
    assert list(folder.iterdir()) == []
    assert not Recording.objects.exists()
    recorded.platform.turn()
    assert recorded.taps() == {"digits-00001": None}
    assert "RecordingDeleted" in recorded.platform.events()


def test_seven_days_are_the_default() -> None:
    assert RecordingOrder(CONSENT).retention == timedelta(days=7)


def test_a_deleted_recording_is_gone_with_its_file(recorded: Recorded, folder: Path) -> None:
    recorded.tell("a")
    recorded.platform.turn()
    recording_delete(**SERVICE, recording_id=recorded.id, actor="bob", now=recorded.platform.clock())
    assert recordings_forget(now=recorded.platform.clock()) == 1
    assert list(folder.iterdir()) == []
    recorded.tell("b")
    recorded.platform.turn()
    assert list(folder.iterdir()) == []


def test_the_recordings_of_a_deleted_service_go_with_it(recorded: Recorded, folder: Path) -> None:
    recorded.tell("a")
    recorded.platform.turn()
    service_delete(**SERVICE, actor="bob", now=recorded.platform.clock())
    while InferenceService.objects.exists():
        recorded.platform.turn()
    recordings_forget(now=recorded.platform.clock())
    assert list(folder.iterdir()) == []


def test_one_recording_runs_at_a_time_and_another_may_follow(recorded: Recorded) -> None:
    with pytest.raises(Conflict, match=f"recording {recorded.id} of service default/digits runs already; stop it"):
        recorded.start()
    recording_stop(**SERVICE, recording_id=recorded.id, actor="bob", now=recorded.platform.clock())
    assert recorded.start().pk != recorded.id


def test_a_cluster_that_cannot_record_is_not_asked_to(platform: Platform) -> None:
    platform.live()
    Cluster.objects.update(kind="kubernetes", document={**LEAST, "name": "local"})
    with pytest.raises(Conflict, match="runs on cluster local, whose file says no controlPlaneUrl"):
        recording_start(**SERVICE, order=RecordingOrder(CONSENT), actor="alice", now=platform.clock())


def test_a_recording_that_is_not_there(recorded: Recorded) -> None:
    with pytest.raises(NotFound, match="service default/digits has no recording 99"):
        recording_stop(**SERVICE, recording_id=99, actor="bob", now=recorded.platform.clock())


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"consent": "  ok  "}, "consent"),
        ({"share_percent": 0.0}, "share_percent"),
        ({"share_percent": 101.0}, "share_percent"),
        ({"share_percent": float("nan")}, "share_percent"),
        ({"max_requests": 0}, "max_requests"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"retention": timedelta(0)}, "retention"),
        ({"retention": timedelta(days=91)}, "retention"),
    ],
)
def test_an_order_that_cannot_be_names_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(RecordingOrder(CONSENT), **changed).check()
    assert refused.value.field == field


def test_the_newest_are_read_from_the_end_of_the_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [Exchange(f"r{number}", "digits-00001", "1", number, {}, {}) for number in range(30)]
    lengths = [0]
    for begin in range(0, 30, 10):
        lengths.append(payload_files.append(1, told[begin : begin + 10], at=lengths[-1]))
    payload_files.append(1, told, at=lengths[-1])  # what a turn left behind that did not come to its end

    def newest(most: int, length: int = lengths[-1]) -> list[str]:
        return [each.request_id for each in payload_files.newest(1, length=length, most=most)]

    assert newest(12) == [f"r{number}" for number in range(29, 17, -1)]
    assert newest(99) == [f"r{number}" for number in range(29, -1, -1)]
    assert newest(99, length=lengths[1]) == [f"r{number}" for number in range(9, -1, -1)]
    assert newest(99, length=0) == []
    monkeypatch.setattr(payload_files, "_TAIL_BYTES", lengths[-1] - lengths[1] - 5)
    assert newest(99) == [f"r{number}" for number in range(29, 19, -1)]
    monkeypatch.setattr(payload_files, "_TAIL_UNPACKED_BYTES", 40)
    assert newest(99) == []
