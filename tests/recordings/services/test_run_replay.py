"""Replays from their start to their end, on a fake cluster; and workers that end in the middle."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from common.errors import Conflict, InvalidInput, NotFound, Unavailable
from events.models import Event
from integrations.clusters.base import Exchange
from jobs.services import run_claim
from jobs.services.claim import due
from recordings import tasks
from recordings.models import Recording, Replay
from recordings.selectors.replays import replay_summary
from recordings.services.recordings import recording_delete
from recordings.services.replays import REPLAY
from registry.domain.version_lifecycle import Status
from tests.deployments._support.platform import Platform
from tests.deployments._support.replays import SERVICE, Scene, exchange

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene(platform: Platform, settings: Settings, tmp_path: Path) -> Scene:
    settings.RECORDINGS_FOLDER = tmp_path / "recordings"
    return Scene(platform)


def test_a_version_that_answers_the_same_agrees_in_all(scene: Scene) -> None:
    row = scene.make(scene.start())
    summary = replay_summary(row)
    assert (row.status, row.done, row.total, row.reason) == ("DONE", 30, 30, "")
    assert (summary.pairs, summary.differing, summary.agreement_percent) == (30, 0, 100.0)
    assert summary.measurement.verdict == "Successful"
    assert scene.platform.cluster.replaying == []


def test_a_version_that_answers_otherwise_is_told_with_the_worst_requests(scene: Scene) -> None:
    scene.answers(lambda recorded: exchange(int(recorded.at) - 1000, label=11))
    row = scene.make(scene.start())
    summary = replay_summary(row)
    assert (row.status, summary.agreement_percent, summary.measurement.verdict) == ("DONE", 0.0, "Failed")
    assert summary.worst[0].shadow["label"] != summary.worst[0].stable["label"]


def test_errors_of_the_version_are_differences(scene: Scene) -> None:
    scene.answers(lambda recorded: exchange(int(recorded.at) - 1000, error="no memory"))
    assert replay_summary(scene.make(scene.start())).outcomes == {"ShadowFailed": 30}


def test_its_candidate_is_what_a_rollout_would_run(scene: Scene) -> None:
    seen: list[Any] = []
    scene.answers(lambda recorded: (seen.extend(scene.platform.cluster.replaying), recorded)[1])
    scene.make(scene.start())
    assert (seen[0].model_name, seen[0].model_version) == ("digits", "2")
    assert seen[0].artifact_uri == "file:///artifacts/digits-2"


def test_nothing_of_a_request_is_in_events_or_in_the_audit_log(scene: Scene) -> None:
    scene.answers(lambda recorded: exchange(int(recorded.at) - 1000, label=424242))
    scene.make(scene.start())
    assert "ReplayEnded" in scene.platform.events()
    told = [*Event.objects.values_list("message", flat=True), *map(str, AuditEntry.objects.values())]
    assert not [text for text in told if "424242" in text or "request-" in text]


@pytest.mark.parametrize(
    ("said", "answers", "verdict"),
    [
        ({"tolerances": {"label": None}}, 11, "Running"),
        ({"tolerances": {"label": {"abs": 100}}}, 11, "Successful"),
        ({"minAgreementPercent": 0}, 11, "Successful"),
        ({}, 11, "Failed"),
    ],
)
def test_the_terms_are_a_policys(scene: Scene, said: dict[str, Any], answers: int, verdict: str) -> None:
    scene.answers(lambda recorded: exchange(int(recorded.at) - 1000, label=answers))
    assert replay_summary(scene.make(scene.start(terms=said))).measurement.verdict == verdict


def test_a_version_that_cannot_be_served_fails_with_the_runtimes_reason(scene: Scene) -> None:
    scene.platform.cluster.broken["version 2"] = "version 2 cannot be served: no such operator"
    row = scene.make(scene.start())
    assert (row.status, row.reason, row.attempts) == ("FAILED", "version 2 cannot be served: no such operator", 1)
    assert row.finished_at is not None


def test_one_that_broke_off_is_made_again_and_given_up_after_three(scene: Scene) -> None:
    def dies(_recorded: Exchange) -> Exchange:
        raise Unavailable("its process was ended by SIGSEGV")

    scene.answers(dies)
    row = scene.start()
    for attempt in (1, 2, 3):
        assert scene.make(row).attempts == attempt
        assert due(REPLAY, now=timezone.now(), limit=9) == [row.pk]
    assert scene.make(row).status == "FAILED"
    assert row.reason.endswith("broke off 3 times, the last time because its process was ended by SIGSEGV")
    scene.platform.cluster.answers.clear()
    assert scene.make(scene.start()).status == "DONE"


def test_a_worker_that_is_killed_in_the_middle_is_followed_by_another_from_the_first_request(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[str] = []

    def killed(recorded: Exchange) -> Exchange:
        answered.append(recorded.request_id)
        if len(answered) == 10:
            raise SystemExit
        return recorded

    scene.answers(killed)
    row = scene.start()
    with pytest.raises(SystemExit):
        scene.make(row)
    assert due(REPLAY, now=timezone.now(), limit=9) == []  # whose it was may be alive yet
    assert scene.make(row).status == "PENDING"
    Replay.objects.update(next_try_at=timezone.now())  # its lease is over
    assert scene.make(row).status == "DONE"
    assert (row.attempts, row.done, len(answered)) == (2, 30, 40)


def test_what_a_worker_finds_out_after_its_claim_was_lost_is_dropped(scene: Scene) -> None:
    row = scene.start()

    def overtaken(recorded: Exchange) -> Exchange:
        Replay.objects.update(claim=None)
        return recorded

    scene.answers(overtaken)
    assert scene.make(row).status == "PENDING"
    assert row.report == {}


def test_a_worker_that_is_to_end_gives_it_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    row = scene.start()

    def told_to_end(recorded: Exchange) -> Exchange:
        run_claim.stop()
        return recorded

    scene.answers(told_to_end)
    try:
        scene.make(row)
    finally:
        run_claim._stopping.clear()
    assert (row.status, row.attempts, row.claim) == ("PENDING", 0, None)
    assert due(REPLAY, now=timezone.now(), limit=9) == [row.pk]


def test_its_recording_may_go_before_it_begins(scene: Scene) -> None:
    row = scene.start()
    recording_delete(**SERVICE, recording_id=scene.recording.pk, actor="bob", now=timezone.now())
    assert scene.make(row).status == "FAILED"
    assert row.reason == "its recording was deleted before the replay ended"


def test_a_report_outlives_its_recording(scene: Scene) -> None:
    row = scene.make(scene.start())
    recording_delete(**SERVICE, recording_id=scene.recording.pk, actor="bob", now=timezone.now())
    row.refresh_from_db()
    assert row.recording is None
    assert replay_summary(row).pairs == 30


def test_the_newest_recording_that_holds_something_is_taken(scene: Scene) -> None:
    newer = scene.record(5)
    scene.record(0)
    assert scene.start().recording == newer
    assert scene.start(recording=scene.recording.pk).recording == scene.recording


def test_what_cannot_be_replayed_is_refused(scene: Scene) -> None:
    empty = scene.record(0)
    with pytest.raises(Conflict, match=f"recording {empty.pk} of service default/digits holds no requests yet"):
        scene.start(recording=empty.pk)
    with pytest.raises(NotFound, match="has no recording 999"):
        scene.start(recording=999)
    with pytest.raises(NotFound):
        scene.start("9")
    scene.platform.version(3, status=Status.REJECTED, reason="no model")
    with pytest.raises(Conflict, match="REJECTED, not READY"):
        scene.start("3")
    with pytest.raises(InvalidInput, match=r"comparison\.minPairz"):
        scene.start(terms={"minPairz": 1})
    Recording.objects.all().delete()
    with pytest.raises(NotFound, match="has no recording that holds requests; start one first"):
        scene.start()


def test_the_sweep_finds_what_is_due(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(tasks, "send", lambda _task, number: sent.append(number))
    rows = [scene.start() for _ in range(3)]
    tasks.sweep_replays()
    assert sent == [row.pk for row in rows[:2]]
