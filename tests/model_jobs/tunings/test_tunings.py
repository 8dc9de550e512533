"""Tunings from their start to their end, on a fake cluster; and workers that end in the middle."""

import json
import time

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from common.errors import Conflict, NotFound, Unavailable
from deployments.models import InferenceService, Revision
from integrations.clusters.base import Job, JobKind, JobResult, OnStage
from jobs.services import run_claim
from jobs.services.claim import due
from model_jobs.models import Tuning
from model_jobs.tunings.domain.order import TuningOrder
from model_jobs.tunings.services import TUNING, tuned_file, tuning_start, tuning_stop
from registry.domain.version_lifecycle import Status
from tests.deployments._support.platform import Platform
from tests.deployments._support.tunings import CONFIG, POINT, REPORT, SERVICE, Run, Scene

pytestmark = pytest.mark.django_db(transaction=True)
CONTAINER = {"name": "kserve-container", "image": "example.org/tokenizer:1"}
PROGRESS = {"schema": "fairlead.tune-progress/v1", "spent": 0.5, "measurements": 7, "last": POINT, "best": POINT}


@pytest.fixture
def scene(platform: Platform) -> Scene:
    return Scene(platform)


def ends(result: JobResult) -> Run:
    return lambda _job, _told: result


def test_what_was_chosen_is_kept_with_its_plot(scene: Scene) -> None:
    row = scene.make(scene.start())
    assert (row.status, row.reason, row.plot) == ("DONE", "", "<svg/>")
    assert row.report["chosen"]["config"] == CONFIG
    assert row.finished_at is not None
    assert AuditEntry.objects.filter(action="tuning.start").count() == 1


def test_it_runs_as_the_services_replicas_do(scene: Scene) -> None:
    scene.make(scene.start(rows=2, shapes={"x": (3, 4)}, largest_request_rows=4))
    (job,) = scene.jobs
    assert (job.kind, job.artifact_uri) == (JobKind.TUNE, "file:///artifacts/digits-1")
    assert job.timeout_s > 300
    assert job.arguments == (
        "--max-latency-p99-ms=5",
        "--budget=300s",
        "--rows=2",
        "--largest-request-rows=4",
        "--max-batch-size=128",
        "--max-concurrency=256",
        "--shape=x:3x4",
    )


def test_it_runs_on_the_slice_that_was_chosen_for_the_service(scene: Scene) -> None:
    placement = {"accelerator": "nvidia.com/mig-1g.10gb", "products": [], "why": "the least that holds it"}
    Revision.objects.update(accelerator="auto", placement=placement)
    scene.make(scene.start())
    assert scene.jobs[0].resources.accelerator == "nvidia.com/mig-1g.10gb"


def test_its_progress_is_seen_while_it_goes(scene: Scene) -> None:
    row = scene.start()

    def run(_job: Job, told: OnStage) -> JobResult:
        told("a line of something else")
        told(json.dumps(PROGRESS))
        deadline = time.monotonic() + 60
        while Tuning.objects.get().progress.get("spent") != 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return JobResult(0, json.dumps(REPORT))

    assert scene.make(row, run).status == "DONE"


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [
        pytest.param(
            JobResult(2, json.dumps({"schema": "fairlead.tune/v1", "error": "model 'model' cannot be tuned"})),
            "FAILED",
            "the model cannot be tuned",
            id="refused",
        ),
        pytest.param(
            JobResult(124, "", "it did not finish in 600 s"), "FAILED", "it did not finish in 600 s", id="late"
        ),
        pytest.param(JobResult(-9, "", "it was ended by SIGKILL"), "PENDING", "it was ended by SIGKILL", id="killed"),
        pytest.param(JobResult(0, "{}"), "PENDING", "no answer known here", id="another runtime"),
        pytest.param(
            JobResult(3, json.dumps({**REPORT, "chosen": None, "reason": "too slow"})), "DONE", "", id="none chosen"
        ),
    ],
)
def test_how_it_ends(scene: Scene, result: JobResult, status: str, reason: str) -> None:
    row = scene.make(scene.start(), ends(result))
    assert row.status == status
    assert reason in row.reason


def test_one_that_breaks_off_is_made_again_and_given_up_after_three(scene: Scene) -> None:
    def away(_job: Job, _told: OnStage) -> JobResult:
        raise Unavailable("the cluster is away")

    row = scene.start()
    for attempt in (1, 2, 3):
        assert scene.make(row, away).attempts == attempt
        assert due(TUNING, now=timezone.now(), limit=9) == [row.pk]
    assert scene.make(row, away).status == "FAILED"
    assert row.reason == "it broke off 3 times, the last time because the cluster is away"
    assert row.finished_at is not None


def test_a_cluster_makes_one_at_a_time(scene: Scene) -> None:
    first, second = scene.start(), scene.start(service=None)

    def run(_job: Job, _told: OnStage) -> JobResult:
        assert scene.make(second).status == "PENDING"
        return JobResult(0, json.dumps(REPORT))

    assert scene.make(first, run).status == "DONE"
    assert len(scene.jobs) == 1
    assert scene.make(second).status == "DONE"


def test_one_that_is_stopped_ends_its_job(scene: Scene) -> None:
    row = scene.start()
    stopped = {"model": "digits", "number": 1, "tuning_id": row.pk, "actor": "bob", "now": timezone.now()}

    def run(_job: Job, told: OnStage) -> JobResult:
        tuning_stop(**stopped)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            told("")  # raises once the claim is seen to be lost
            time.sleep(0.05)
        raise AssertionError("it goes on")

    assert scene.make(row, run).reason == "somebody stopped it"
    assert row.status == "FAILED"
    with pytest.raises(Conflict, match="is FAILED already"):
        tuning_stop(**stopped)


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
    assert (row.status, row.attempts, row.claim) == ("PENDING", 0, None)


def test_the_tuned_file_differs_in_the_configuration_alone(scene: Scene) -> None:
    everything = {"placement": {"replicas": "spread"}, "transformer": {"containers": [CONTAINER]}}
    service = InferenceService.objects.get()
    service.document["spec"] |= everything
    service.document["spec"]["predictor"]["logger"] = {"url": "http://sink/"}
    service.save()
    row = scene.make(scene.start())
    before = row.service.document
    after = tuned_file(row=row, service=SERVICE)
    model = after["spec"]["predictor"]["model"]
    assert model.pop("config") == CONFIG
    assert after == before


def test_what_cannot_be_applied_is_refused(scene: Scene) -> None:
    row = scene.make(scene.start(), ends(JobResult(3, json.dumps({**REPORT, "chosen": None}))))
    with pytest.raises(Conflict, match="has chosen no configuration"):
        tuned_file(row=row, service=SERVICE)
    row = scene.make(scene.start())
    row.model_config = {"max_batch_size": 2}
    with pytest.raises(Conflict, match=r"is not the one that tuning \d+ began with"):
        tuned_file(row=row, service=SERVICE)
    row.model_version = scene.platform.version(2)
    with pytest.raises(Conflict, match="does not serve digits version 2"):
        tuned_file(row=row, service=SERVICE)


def test_what_cannot_be_tuned_is_refused(scene: Scene) -> None:
    with pytest.raises(NotFound, match="there is no service default/cats"):
        scene.start(service=("default", "cats"))
    version = scene.platform.version(2)
    version.status = Status.PENDING
    version.save()
    asked = TuningOrder(5.0)
    with pytest.raises(Conflict, match="digits version 2 is PENDING"):
        tuning_start(model="digits", number=2, service=None, order=asked, actor="alice", now=timezone.now())
    with pytest.raises(NotFound):
        tuning_start(model="digits", number=9, service=None, order=asked, actor="alice", now=timezone.now())
