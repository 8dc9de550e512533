"""Builds from their start to their end: on a fake cluster, and as a process of this machine with the real runtime."""

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from clusters.models import Cluster
from common.errors import Conflict, InvalidInput, NotFound, Unavailable
from deployments.models import Revision
from integrations.artifacts.archives import Member
from integrations.artifacts.store import StoredArtifact
from integrations.clusters.base import Job, JobKind, JobResult, Made, OnStage
from integrations.clusters.local.driver import LocalDriver
from jobs.services import run_claim
from jobs.services.claim import due
from model_jobs.builds.domain.order import BuildOrder, Precision, Target
from model_jobs.builds.services import BUILD, build_start, build_stop
from model_jobs.models import Build
from registry.models import ModelVersion, RegisteredModel
from registry.storage import store
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import model

pytestmark = pytest.mark.django_db(transaction=True)
Run = Callable[[Job, OnStage, Made], JobResult]
INT8 = BuildOrder(precision=Precision.INT8)
SLICE = "nvidia.com/mig-1g.10gb"


class Scene:
    """A version with files, and clusters that build as told."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        rows = io.BytesIO()
        np.savez(rows, x=np.random.default_rng(1).normal(size=(16, 4)).astype("f4"))
        files = {"1/model.onnx": model(3), "calibration.npz": rows.getvalue()}
        stored = store().put_folder([Member(name, io.BytesIO(each)) for name, each in files.items()], owner="test")
        self.version = platform.version(1)
        self.version.digest, self.version.artifact_uri = stored.digest, stored.uri
        self.version.lineage = {"source_commit": "abc", "parameters": {"epochs": "3"}, "source_uri": "s3://b/m.onnx"}
        self.version.save()
        RegisteredModel.objects.update(latest_number=1)
        self.jobs: list[Job] = []

    def start(self, order: BuildOrder = INT8, service: tuple[str, str] | None = None) -> Build:
        return build_start(model="digits", number=1, service=service, order=order, actor="alice", now=timezone.now())

    def make(self, row: Build, run: Run) -> Build:
        class Cluster:
            def run(_self, job: Job, told: OnStage, made: Made) -> JobResult:  # noqa: N805
                self.jobs.append(job)
                return run(job, told, made)

        run_claim.run(BUILD, row.pk, lambda _cluster: Cluster(), clock=timezone.now)  # type: ignore[arg-type, return-value]
        row.refresh_from_db()
        return row


@pytest.fixture
def scene(platform: Platform, settings: Settings, tmp_path: Path) -> Scene:
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    return Scene(platform)


def ends(result: JobResult) -> Run:
    return lambda _job, _told, _made: result


def brings(folder: Path, digest: str = "") -> Run:
    """Have a job make a plan."""
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.plan").write_bytes(b"a plan")
    names = {"1/model.plan": b"a plan"}

    def run(_job: Job, _told: OnStage, made: Made) -> JobResult:
        made(folder)
        stored: StoredArtifact = store().put_folder(
            [Member(name, io.BytesIO(content)) for name, content in names.items()], owner="again"
        )
        report = {"digest": digest or stored.digest, "made": {"gpu": "NVIDIA H200", "tensorrt": "11.4"}}
        return JobResult(0, json.dumps({"schema": "fairlead.build/v1", **report}))

    return run


def test_a_model_is_quantized_on_this_machine_and_becomes_a_version(scene: Scene, tmp_path: Path) -> None:
    row = scene.start()
    stages: list[str] = []

    def run(job: Job, told: OnStage, made: Made) -> JobResult:
        def note(line: str) -> None:
            stages.append(line)
            told(line)

        return LocalDriver(tmp_path / "cluster").run(job, note, made)

    scene.make(row, run)
    assert (row.status, row.reason) == ("DONE", "")
    assert row.version is not None
    assert row.version.number == 2
    assert row.version.status == "PENDING", "it is checked like one that was pushed"
    lineage = row.version.lineage
    assert (lineage["built_from"], lineage["source_commit"], lineage["source_uri"]) == ("models:/digits/1", "abc", "")
    assert lineage["parameters"]["epochs"] == "3"
    assert lineage["parameters"]["build.precision"] == "int8"
    (job,) = scene.jobs
    assert (job.kind, job.arguments) == (JobKind.BUILD, ("--target=onnx", "--precision=int8"))
    files = {path.relative_to(store().path_of(row.version.digest)).as_posix() for path in _files(row.version)}
    assert files == {"1/model.onnx"}
    assert AuditEntry.objects.filter(action__in=("build.start", "model_version.register")).count() == 2


def test_its_progress_is_seen_while_it_goes(scene: Scene, tmp_path: Path) -> None:
    row = scene.start()
    line = json.dumps({"schema": "fairlead.build-progress/v1", "stage": "calibrating: 3 of 16 rows"})

    def run(job: Job, told: OnStage, made: Made) -> JobResult:
        told("a warning of a library")
        told(line)
        deadline = time.monotonic() + 60
        while Build.objects.get().progress.get("stage") != "calibrating: 3 of 16 rows":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return brings(tmp_path / "made")(job, told, made)

    assert scene.make(row, run).status == "DONE"


def test_a_plan_needs_a_gpu_and_the_runtime_says_so(scene: Scene, tmp_path: Path) -> None:
    row = scene.make(scene.start(BuildOrder(Target.TENSORRT)), LocalDriver(tmp_path / "cluster").run)
    assert row.status == "FAILED"
    assert row.reason.startswith("a plan is built on the GPU that is to run it, and this process has none: ")


def test_a_plan_is_built_and_later_checked_on_the_slice_that_it_is_for(scene: Scene, tmp_path: Path) -> None:
    order = BuildOrder(Target.TENSORRT, accelerator=SLICE, products=("NVIDIA-A100",))
    row = scene.make(scene.start(order), brings(tmp_path / "made"))
    assert row.status == "DONE", row.reason
    (job,) = scene.jobs
    assert (job.resources.accelerator, job.resources.products) == (SLICE, ("NVIDIA-A100",))
    assert row.version is not None
    lineage = row.version.lineage
    assert (lineage["accelerator"], lineage["products"]) == (SLICE, ["NVIDIA-A100"])
    assert lineage["parameters"]["build.tensorrt"] == "11.4"


def test_a_plan_is_for_the_slice_of_a_service(scene: Scene) -> None:
    scene.platform.policy()
    scene.platform.apply()
    with pytest.raises(Conflict, match="runs on no GPU"):
        scene.start(BuildOrder(Target.TENSORRT), ("default", "digits"))
    placement = {"accelerator": SLICE, "products": ["NVIDIA-A100"], "why": "the least that holds it"}
    Revision.objects.update(accelerator="auto", placement=placement)
    row = scene.start(BuildOrder(Target.TENSORRT), ("default", "digits"))
    assert (row.order["accelerator"], row.order["products"]) == (SLICE, ["NVIDIA-A100"])
    Cluster.objects.update(name="elsewhere")
    with pytest.raises(Conflict, match="runs on elsewhere, and versions are built on local"):
        scene.start(BuildOrder(Target.TENSORRT), ("default", "digits"))


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [
        pytest.param(
            JobResult(2, json.dumps({"schema": "fairlead.build/v1", "error": "int8 needs typical rows"})),
            "FAILED",
            "int8 needs typical rows",
            id="refused",
        ),
        pytest.param(JobResult(-9, "", "it was ended by SIGKILL"), "PENDING", "it was ended by SIGKILL", id="killed"),
        pytest.param(
            JobResult(0, json.dumps({"schema": "fairlead.build/v1", "digest": "sha256:1", "made": {}})),
            "FAILED",
            "what came back is nothing, and what was built sha256:1",
            id="without its files",
        ),
    ],
)
def test_how_one_without_a_version_ends(scene: Scene, result: JobResult, status: str, reason: str) -> None:
    row = scene.make(scene.start(), ends(result))
    assert (row.status, row.version) == (status, None)
    assert reason in row.reason


def test_files_that_are_others_than_were_built_become_no_version(scene: Scene, tmp_path: Path) -> None:
    row = scene.make(scene.start(), brings(tmp_path / "made", digest="sha256:other"))
    assert (row.status, row.version) == ("FAILED", None)
    assert row.reason.endswith("and what was built sha256:other")


def test_one_that_breaks_off_is_made_again_and_given_up_after_three(scene: Scene) -> None:
    def away(_job: Job, _told: OnStage, _made: Made) -> JobResult:
        raise Unavailable("the cluster is away")

    row = scene.start()
    for attempt in (1, 2, 3):
        assert scene.make(row, away).attempts == attempt
        assert due(BUILD, now=timezone.now(), limit=9) == [row.pk]
    assert scene.make(row, away).reason == "it broke off 3 times, the last time because the cluster is away"
    assert len({job.result_id for job in scene.jobs}) == 3, "what an earlier attempt brings is refused"


def test_a_cluster_makes_one_at_a_time(scene: Scene, tmp_path: Path) -> None:
    first, second = scene.start(), scene.start()

    def run(job: Job, told: OnStage, made: Made) -> JobResult:
        assert scene.make(second, ends(JobResult(0, ""))).status == "PENDING"
        assert second.attempts == 0
        return brings(tmp_path / "made")(job, told, made)

    assert scene.make(first, run).status == "DONE"


def test_one_that_is_stopped_ends_its_job_and_makes_no_version(scene: Scene, tmp_path: Path) -> None:
    row = scene.start()

    def run(job: Job, told: OnStage, made: Made) -> JobResult:
        build_stop(model="digits", number=1, build_id=row.pk, actor="bob", now=timezone.now())
        with pytest.raises(Conflict, match="not waited for any more"):
            brings(tmp_path / "made")(job, told, made)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            told("")  # raises once the claim is seen to be lost
            time.sleep(0.05)
        raise AssertionError("it goes on")

    assert scene.make(row, run).reason == "somebody stopped it"
    with pytest.raises(Conflict, match="is FAILED already"):
        build_stop(model="digits", number=1, build_id=row.pk, actor="bob", now=timezone.now())
    assert ModelVersion.objects.count() == 1


def test_a_worker_that_is_to_end_gives_it_back(scene: Scene) -> None:
    row = scene.start()

    def run(_job: Job, told: OnStage, _made: Made) -> JobResult:
        run_claim.stop()
        told("")
        raise AssertionError("it goes on")

    try:
        scene.make(row, run)
    finally:
        run_claim._stopping.clear()
    assert (row.status, row.attempts, row.claim) == ("PENDING", 0, None)


def test_what_cannot_be_built_is_refused(scene: Scene) -> None:
    with pytest.raises(NotFound, match="there is no service default/cats"):
        scene.start(service=("default", "cats"))
    with pytest.raises(InvalidInput, match="fp32 as it is"):
        scene.start(BuildOrder(precision=Precision.FP32))
    ModelVersion.objects.update(status="PENDING")
    with pytest.raises(Conflict, match="digits version 1 is PENDING"):
        scene.start()
    assert not Build.objects.exists()


def _files(version: ModelVersion) -> list[Path]:
    return [path for path in store().path_of(version.digest).rglob("*") if path.is_file()]
