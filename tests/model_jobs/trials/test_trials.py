"""Trials from their start to their end: on a fake cluster, and as a process of this machine with the real runtime."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from common.errors import Conflict, InvalidInput, Unavailable
from integrations.clusters.base import Job, JobKind, JobResult, OnStage
from integrations.clusters.local.driver import LocalDriver
from jobs.services import run_claim
from jobs.services.claim import due, jobs_forget
from model_jobs.models import Trial
from model_jobs.trials.domain.order import MOST_REQUEST_BYTES
from model_jobs.trials.services import KEPT, TRIAL, trial_start, trial_stop
from registry.models import ModelVersion, RegisteredModel
from registry.storage import store
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import model

pytestmark = pytest.mark.django_db(transaction=True)
Run = Callable[[Job, OnStage], JobResult]
ROW = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
DONE = {"schema": "fairlead.try/v1", "load_ms": 41.0, "first_ms": 2.0, "infer_ms": 0.5, "runs": 5}
LABEL = {"name": "label", "datatype": "INT64", "shape": [1], "data": [7]}


class Scene:
    """A version with files, and clusters that answer as told."""

    def __init__(self, platform: Platform) -> None:
        with store().begin("model.onnx") as writer:
            writer.write(model(3))
            stored = writer.commit()
        self.version = platform.version(1)
        self.version.digest, self.version.artifact_uri = stored.digest, stored.uri
        self.version.save()
        RegisteredModel.objects.update(latest_number=1)
        self.jobs: list[Job] = []

    def start(self, request: dict[str, object] = ROW) -> Trial:  # type: ignore[assignment]
        return trial_start(model="digits", number=1, request=request, actor="alice", now=timezone.now())

    def make(self, row: Trial, run: Run) -> Trial:
        class Cluster:
            def run(_self, job: Job, told: OnStage) -> JobResult:  # noqa: N805
                self.jobs.append(job)
                return run(job, told)

        run_claim.run(TRIAL, row.pk, lambda _cluster: Cluster(), clock=timezone.now)  # type: ignore[arg-type, return-value]
        row.refresh_from_db()
        return row


@pytest.fixture
def scene(platform: Platform, settings: Settings, tmp_path: Path) -> Scene:
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    return Scene(platform)


def ends(exit_code: int, document: dict[str, object], message: str = "") -> Run:
    return lambda _job, _told: JobResult(exit_code, json.dumps(document), message)


REFUSES = ends(2, {"schema": "fairlead.try/v1", "error": "no"})


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_request_is_answered_on_this_machine(scene: Scene, tmp_path: Path) -> None:
    row = scene.make(scene.start(), LocalDriver(tmp_path / "cluster").run)
    assert (row.status, row.reason) == ("DONE", "")
    answer = json.loads(row.answer)
    assert (answer["model_name"], answer["model_version"]) == ("digits", "1")
    assert answer["outputs"][0]["datatype"] == "FP32"
    assert row.report["status"] == 200
    assert row.report["load_ms"] > 0
    (job,) = scene.jobs
    assert (job.kind, json.loads(job.request)) == (JobKind.TRY, ROW)
    assert AuditEntry.objects.filter(action="trial.start").get().after["request_bytes"] < 100


def test_a_refusal_is_told_in_the_runtimes_words_by_the_names_of_the_registry(scene: Scene, tmp_path: Path) -> None:
    wrong = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
    row = scene.make(scene.start(wrong), LocalDriver(tmp_path / "cluster").run)
    assert (row.status, row.answer, row.report["status"]) == ("DONE", "", 400)
    assert "'x'" in row.report["error"]
    assert "model 'model'" not in row.report["error"]


def test_a_model_that_cannot_be_loaded_fails_the_trial(scene: Scene, tmp_path: Path) -> None:
    with store().begin("model.onnx") as writer:
        writer.write(b"garbage")
        stored = writer.commit()
    ModelVersion.objects.update(artifact_uri=stored.uri)
    row = scene.make(scene.start(), LocalDriver(tmp_path / "cluster").run)
    assert row.status == "FAILED"
    assert "not an ONNX model" in row.reason


def test_its_stages_are_seen_while_it_goes(scene: Scene) -> None:
    row = scene.start()

    def run(_job: Job, told: OnStage) -> JobResult:
        until(lambda: Trial.objects.get().stage == "starting the runtime")
        told("a warning of a library")
        told(json.dumps({"schema": "fairlead.try-progress/v1", "stage": "loading the model"}))
        until(lambda: Trial.objects.get().stage == "loading the model")
        return ends(0, {**DONE, "status": 200, "answer": {"outputs": [LABEL]}, "labels": {"label": ["a\0b"]}})(
            _job, told
        )

    scene.make(row, run)
    assert (row.status, row.report["labels"]) == ("DONE", {"label": ["ab"]})


@pytest.mark.parametrize(
    ("run", "status", "reason"),
    [
        pytest.param(REFUSES, "FAILED", "no", id="cannot be loaded"),
        pytest.param(
            ends(124, {}, "the try of the model did not finish within 120 s"),
            "FAILED",
            "the trial did not finish within 120 s",
            id="too slow",
        ),
        pytest.param(ends(-9, {}, "ended by SIGKILL"), "PENDING", "ended by SIGKILL", id="killed"),
    ],
)
def test_how_one_without_an_answer_ends(scene: Scene, run: Run, status: str, reason: str) -> None:
    row = scene.make(scene.start(), run)
    assert (row.status, row.answer, row.report) == (status, "", {})
    assert reason in row.reason


def test_one_that_breaks_off_is_made_again_and_given_up_after_three(scene: Scene) -> None:
    def away(_job: Job, _told: OnStage) -> JobResult:
        raise Unavailable("the cluster is away")

    row = scene.start()
    for attempt in (1, 2, 3):
        assert scene.make(row, away).attempts == attempt
        assert due(TRIAL, now=timezone.now(), limit=9) == [row.pk]
    assert scene.make(row, away).reason == "it broke off 3 times, the last time because the cluster is away"
    assert len({job.request_id for job in scene.jobs}) == 3, "a pod of an earlier attempt gets nothing"


def test_a_cluster_makes_two_at_a_time(scene: Scene) -> None:
    rows = [scene.start() for _ in range(3)]

    def second(_job: Job, told: OnStage) -> JobResult:
        assert scene.make(rows[2], REFUSES).attempts == 0
        return REFUSES(_job, told)

    def first(job: Job, told: OnStage) -> JobResult:
        assert scene.make(rows[1], second).status == "FAILED"
        assert scene.make(rows[2], REFUSES).status == "FAILED"
        return REFUSES(job, told)

    assert scene.make(rows[0], first).status == "FAILED"


def test_one_that_is_stopped_ends_its_job(scene: Scene) -> None:
    row = scene.start()

    def run(_job: Job, told: OnStage) -> JobResult:
        trial_stop(model="digits", number=1, trial_id=row.pk, actor="bob", now=timezone.now())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            told("")  # raises once the claim is seen to be lost
            time.sleep(0.05)
        raise AssertionError("it goes on")

    assert scene.make(row, run).reason == "somebody stopped it"
    with pytest.raises(Conflict, match="is FAILED already"):
        trial_stop(model="digits", number=1, trial_id=row.pk, actor="bob", now=timezone.now())


def test_a_worker_that_is_to_end_gives_it_back(scene: Scene) -> None:
    row = scene.start()

    def run(_job: Job, told: OnStage) -> JobResult:
        run_claim.stop()
        told("")
        raise AssertionError("it goes on")

    try:
        scene.make(row, run)
    finally:
        run_claim._stopping.clear()
    assert (row.status, row.attempts, row.claim, row.stage) == ("PENDING", 0, None, "")


def test_they_are_bounded_and_forgotten(scene: Scene) -> None:
    for _ in range(25):
        scene.make(scene.start(), REFUSES)
    assert Trial.objects.count() == 20
    scene.start()
    now = timezone.now()
    assert jobs_forget(now=now) == 0
    assert jobs_forget(now=now + KEPT + timedelta(seconds=1)) == 20
    for _ in range(10):
        scene.start()
    with pytest.raises(Conflict, match=r"10 trials of .* wait already"):
        scene.start()


def test_what_cannot_be_tried_is_refused(scene: Scene) -> None:
    with pytest.raises(InvalidInput, match="no list `inputs`"):
        scene.start({"instances": []})
    with pytest.raises(InvalidInput, match=f"and a trial takes {MOST_REQUEST_BYTES}"):
        scene.start({"inputs": ["x" * MOST_REQUEST_BYTES]})
    ModelVersion.objects.update(status="PENDING")
    with pytest.raises(Conflict, match="digits version 1 is PENDING"):
        scene.start()
    assert not Trial.objects.exists()
