"""Recordings of a service and their replays: begun, under way, over, unreadable."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from clusters.models import Cluster
from deployments.domain.comparison.pairing import Pair
from deployments.domain.comparison.report import Report
from deployments.domain.comparison.stored import report_json, worst_json
from deployments.reconcile.participants.comparison import with_pair
from recordings.models import Recording, Replay
from recordings.reconcile import payload_files
from recordings.selectors.replays import replay_terms
from recordings.services.recordings import RecordingOrder, recording_start
from tests import comparisons, scenes
from tests.browser.states.of_home import LONGEST
from tests.browser.states.state import PageStates, Stage, State
from tests.deployments._support.cluster_files import LEAST

CONSENT = "Our customers agreed in the terms of 2026 (section 4) that we try new versions on their requests."


def recording(stage: Stage, *, name: str = "digits", count: int = 0, over: bool = False) -> Recording:
    """Return a recording of a service with two versions, that holds so many requests."""
    stage.settings.RECORDINGS_FOLDER = stage.folder / "recordings"
    of, now = scenes.service(name), timezone.now()
    order = RecordingOrder(CONSENT, share_percent=12.5, max_requests=500)
    row = recording_start(namespace=of.namespace, name=of.name, order=order, actor="alice (token alice)", now=now)
    scenes.model_version(2)
    if count:
        at = now.timestamp() - 3 * count
        told = comparisons.exchanges(count, at, of=of.name)[::2]
        took = [replace(each, took_ms=0.042 * 1.7 ** (number % 20)) for number, each in enumerate(told)]
        length = payload_files.append(row.pk, took, at=0)
        refused = {"response": {"error": "no such input"}, "error_code": "INVALID_ARGUMENT"}
        more = comparisons.exchange("f" * 36, f"{of.name}-00001", at + count, **refused)
        length = payload_files.append(row.pk, [more], at=length)
        Recording.objects.filter(pk=row.pk).update(requests=count + 1, bytes=length)
    if over:
        ended = {"ended_at": now, "end_reason": "it reached its limit of 500 requests"}
        Recording.objects.filter(pk=row.pk).update(**ended)
    row.refresh_from_db()
    return row


def replayed(row: Recording, count: int = 120, **fields: Any) -> Replay:
    """Return a replay of a recording; without `fields` one that came to its end."""
    replay = scenes.replay(row)
    Recording.objects.filter(pk=row.pk).update(requests=row.requests, bytes=row.bytes)
    if not fields:
        report, told = Report(), comparisons.exchanges(count, 0.0)
        for stable, shadow in zip(told[::2], told[1::2], strict=True):
            report = with_pair(report, Pair(stable, shadow), replay_terms(replay))
        fields = {"status": "DONE", "report": report_json(report), "worst": worst_json(report), "done": count}
        fields |= {"finished_at": timezone.now(), "next_try_at": None}
    Replay.objects.filter(pk=replay.pk).update(total=count, **fields)
    return replay


def failed() -> dict[str, Any]:
    """Return the columns of a replay that could not be made."""
    reason = "version 1 cannot be served: the model needs more memory than there is"
    return {"status": "FAILED", "reason": reason, "finished_at": timezone.now(), "next_try_at": None}


def _list(row: Recording) -> str:
    return f"/services/{row.service.namespace}/{row.service.name}/recordings/"


def _list_empty(_: Stage) -> str:
    service = scenes.service()
    return f"/services/{service.namespace}/{service.name}/recordings/"


def _list_busy(stage: Stage) -> str:
    row = recording(stage, name=LONGEST, count=120, over=True)
    replayed(row)
    replayed(row, **failed())
    replayed(row, claim="0" * 32, done=48)
    more = {"namespace": row.service.namespace, "name": row.service.name, "now": timezone.now() + timedelta(seconds=1)}
    recording_start(order=RecordingOrder(CONSENT * 3), actor="alice (token alice)", **more)
    return _list(row)


def _list_error(_: Stage) -> str:
    service = scenes.service()
    Cluster.objects.update(kind="kubernetes", document={**LEAST, "name": "local"})
    return f"/services/{service.namespace}/{service.name}/recordings/"


def _recording_new(stage: Stage) -> str:
    row = recording(stage)
    return f"{_list(row)}{row.pk}/"


def _recording_busy(stage: Stage) -> str:
    row = recording(stage, name=LONGEST, count=120)
    replayed(row)
    return f"{_list(row)}{row.pk}/"


def _recording_over(stage: Stage) -> str:
    row = recording(stage, count=4, over=True)
    return f"{_list(row)}{row.pk}/"


def _recording_lost(stage: Stage) -> str:
    row = recording(stage)
    Recording.objects.filter(pk=row.pk).update(requests=3, bytes=1000)
    return f"{_list(row)}{row.pk}/"


def _replay(stage: Stage, **fields: Any) -> str:
    row = recording(stage, count=120, over=True)
    replay = replayed(row, **fields)
    return f"/services/{row.service.namespace}/{row.service.name}/replays/{replay.pk}/"


PAGES = {
    "deployments:recording-list": PageStates(
        title="Recorded requests of",
        states={
            "empty": State(_list_empty, "Start recording"),
            "busy": State(_list_busy, "a service runs one at a time"),
            "error": State(_list_error, "cannot record"),
        },
    ),
    "deployments:recording-detail": PageStates(
        title="Recording",
        states={
            "empty": State(_recording_new, "No requests yet"),
            "busy": State(_recording_busy, "invalid argument"),
            "busy-over": State(_recording_over, "It ended"),
            "error": State(_recording_lost, "Fairlead cannot list them"),
        },
    ),
    "deployments:replay-detail": PageStates(
        title="Replay",
        states={
            "empty": State(lambda stage: _replay(stage, attempts=0), "It waits for its turn"),
            "busy": State(lambda stage: _replay(stage, claim="0" * 32, done=48), "48 of 120"),
            "busy-done": State(_replay, "Answers compared"),
            "error": State(lambda stage: _replay(stage, **failed()), "Not compared"),
        },
    ),
}
