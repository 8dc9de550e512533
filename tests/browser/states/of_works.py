"""Builds and tunings of a version: asked for, under way, ended well or badly."""

from typing import Any

from django.utils import timezone

from jobs.services.claim import begin, fail
from jobs.services.claim_renewal import LEASE
from model_jobs.models import Build, Tuning
from model_jobs.trials.services import TRIAL
from tests import scenes
from tests.browser.states.of_models import rejected
from tests.browser.states.state import PageStates, Stage, State
from tests.deployments._support.tuning_points import BEST, FAST, NOW, point
from tests.deployments._support.tuning_reports import REPORT

VERSION = "/models/digits/versions/1/"
UNCALIBRATED = "int8 needs typical rows: give calibration.npz beside config.pbtxt"
NO_ROOM = "no setting stays within a p99 of 10 ms; the fastest, one instance without batches, takes 14 ms"


def _ended(row: Build | Tuning, **fields: Any) -> None:
    values = {"finished_at": timezone.now(), "next_try_at": None, **fields}
    type(row)._default_manager.filter(pk=row.pk).update(**values)


def _version(path: str) -> str:
    scenes.model_version(1)
    return f"{VERSION}{path}"


def _rejected(path: str) -> str:
    rejected(1)
    return f"{VERSION}{path}"


def _built() -> tuple[Build, Build, Build]:
    scenes.service()
    going, failed, done = (scenes.build() for _ in range(3))
    Build.objects.filter(pk=going.pk).update(claim="0" * 32, progress={"stage": "calibrating: 3 of 64 rows"})
    _ended(failed, status="FAILED", reason=UNCALIBRATED)
    _ended(done, status="DONE", version=scenes.model_version(2), report={"made": {"onnxruntime": "1.31.0"}})
    return going, failed, done


def _tuned() -> tuple[Tuning, Tuning, Tuning]:
    scenes.service()
    search, failed, found = (scenes.tuning() for _ in range(3))
    progress = {"spent": 0.4, "measurements": 7, "last": FAST, "best": BEST}
    Tuning.objects.filter(pk=search.pk).update(claim="0" * 32, progress=progress)
    _ended(failed, status="FAILED", reason=NO_ROOM)
    more = [point(0.5 + each / 3, 80 * each, instances=each, concurrency=2 * each) for each in range(1, 20)]
    _ended(found, status="DONE", report={**REPORT, "points": [*REPORT["points"], *more, NOW]})
    return search, failed, found


def _trial(*, failed: bool = False) -> str:
    scenes.model_version(1)
    row = scenes.trial()
    if failed:
        claim = begin(TRIAL, row.pk, now=timezone.now(), lease=LEASE)
        assert claim is not None
        fail(TRIAL, claim, reason="the model needs more memory than there is", now=timezone.now())
    return f"{VERSION}try/trials/{row.pk}/"


def _builds(_: Stage) -> str:
    _built()
    return f"{VERSION}builds/"


def _build(which: int) -> str:
    return f"{VERSION}builds/{_built()[which].pk}/"


def _build_waiting(_: Stage) -> str:
    scenes.model_version(1)
    return f"{VERSION}builds/{scenes.build().pk}/"


def _tunings(_: Stage) -> str:
    _tuned()
    return f"{VERSION}tunings/"


def _tuning(which: int) -> str:
    return f"{VERSION}tunings/{_tuned()[which].pk}/"


def _tuning_waiting(_: Stage) -> str:
    scenes.service()
    return f"{VERSION}tunings/{scenes.tuning().pk}/"


PAGES = {
    "deployments:trial": PageStates(
        title="Try digits version 1",
        states={
            "busy": State(lambda _: _trial(), "Stop it"),
            "error": State(lambda _: _trial(failed=True), "needs more memory than there is"),
        },
        without={"empty": "a trial has a request"},
    ),
    "deployments:build-list": PageStates(
        title="Builds of digits version 1",
        states={
            "empty": State(lambda _: _version("builds/"), "New build"),
            "busy": State(_builds, "nt8 needs typical rows"),
            "error": State(lambda _: _rejected("builds/"), "Fairlead can build nothing from version 1"),
        },
    ),
    "deployments:build-detail": PageStates(
        title="uild",
        states={
            "empty": State(_build_waiting, "It waits for its turn"),
            "busy": State(lambda _: _build(2), "Deploy it"),
            "error": State(lambda _: _build(1), "nt8 needs typical rows"),
        },
    ),
    "deployments:tuning-list": PageStates(
        title="uning",
        states={
            "empty": State(lambda _: _version("tunings/"), "Start the search"),
            "busy": State(_tunings, "p99"),
            "error": State(lambda _: _rejected("tunings/"), "version 1"),
        },
    ),
    "deployments:tuning-detail": PageStates(
        title="uning",
        states={
            "empty": State(_tuning_waiting, "waits for its turn"),
            "busy": State(lambda _: _tuning(0), "7 measured"),
            "busy-found": State(lambda _: _tuning(2), "Results"),
            "error": State(lambda _: _tuning(1), "o setting stays within"),
        },
    ),
}
