"""The check of a version: with the real runtime in processes of its own, and with a cluster that fails."""

import io
import json
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.errors import Unavailable
from common.randomness import new_id
from control_plane.celery import app
from integrations.clusters.base import Job, JobKind, JobResult
from registry import hooks, tasks
from registry.domain.version_lifecycle import MAX_ATTEMPTS, Status
from registry.models import ModelVersion

Api = Callable[..., APIClient]
Onnx = Callable[..., bytes]
Register = Callable[..., ModelVersion]


class FakeCluster:
    """A cluster whose jobs end as told; notes whether a transaction was open meanwhile."""

    def __init__(self, *ends: JobResult | Exception) -> None:
        self.ends = list(ends)
        self.jobs: list[Job] = []
        self.in_transaction: list[bool] = []

    def run(self, job: Job) -> JobResult:
        self.jobs.append(job)
        self.in_transaction.append(connection.in_atomic_block)
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeCluster]:
    def use(*ends: JobResult | Exception) -> FakeCluster:
        fake = FakeCluster(*ends)
        monkeypatch.setattr(hooks, "job_driver", lambda _now: [fake])
        return fake

    return use


@pytest.fixture
def hints_run_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tasks, "_RENEW_EVERY_S", 60.0)  # the test's transaction has the row
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


def push(client: APIClient, content: bytes) -> dict[str, object]:
    address = "/api/v1/models/linear/versions?filename=model.onnx"
    answer = client.post(address, content, content_type="application/octet-stream")
    assert answer.status_code == 201
    body: dict[str, object] = client.get(f"/api/v1/models/linear/versions/{answer.json()['number']}").json()
    return body


def test_a_model_is_ready_with_signature_and_profile(
    api: Api, store_folder: Path, linear_model: Onnx, hints_run_at_once: None
) -> None:
    version = push(api(Scope.WRITE), linear_model())
    assert (version["status"], version["reason"], version["platform"]) == ("READY", "", "onnxruntime_onnx")
    assert version["signature"] == {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
        "max_batch_size": version["profile"]["max_batch_size"],
    }
    profile = version["profile"]
    assert isinstance(profile, dict)
    assert profile.keys() == {"load_seconds", "memory_bytes", "batches", "max_batch_size", "device"}
    assert profile["max_batch_size"] == profile["batches"][-1]["batch_size"] > 4
    assert profile["batches"][0]["batch_size"] == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(lambda onnx: bytes(1000), "it is not a protobuf message", id="nothing but zeros"),
        pytest.param(lambda onnx: b"this is no model", "is not an ONNX model", id="no model"),
        pytest.param(
            lambda onnx: onnx()[:-40], "is not an ONNX model: it ends in the middle", id="a model that was cut off"
        ),
        pytest.param(
            lambda onnx: onnx(opset=99), "uses opset 99 of ai.onnx; this runtime supports", id="an unsupported opset"
        ),
    ],
)
def test_what_the_runtime_cannot_serve_is_rejected_in_its_words(
    api: Api,
    store_folder: Path,
    linear_model: Onnx,
    hints_run_at_once: None,
    content: Callable[[Onnx], bytes],
    told: str,
) -> None:
    version = push(api(Scope.WRITE), content(linear_model))
    assert version["status"] == "REJECTED"
    assert told in str(version["reason"])
    assert 10 < len(str(version["reason"])) < 400
    assert "version 1: " not in str(version["reason"])
    assert version["signature"] == {"inputs": [], "outputs": []}


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_runtime_is_asked(
    register: Register, cluster: Callable[..., FakeCluster], settings: Settings
) -> None:
    settings.MODEL_CHECK_TIMEOUT_S = 7
    inspected = '{"schema":"fairlead.inspect/v1","platform":"p","inputs":[],"outputs":[]}'
    fake = cluster(JobResult(0, inspected), JobResult(0, '{"schema":"fairlead.profile/v1","batches":[]}'))
    version = register(status=Status.PENDING)
    tasks.check_version(version.pk)
    version.refresh_from_db()
    assert version.status == "READY"
    assert fake.in_transaction == [False, False]
    assert [(job.kind, job.artifact_uri, job.timeout_s) for job in fake.jobs] == [
        (JobKind.INSPECT, version.artifact_uri, 7.0),
        (JobKind.PROFILE, version.artifact_uri, 7.0),
    ]


@pytest.mark.django_db(transaction=True)
def test_what_was_built_for_a_slice_is_checked_on_it_alone(
    register: Register, cluster: Callable[..., FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    inspected = '{"schema":"fairlead.inspect/v1","platform":"tensorrt_plan","inputs":[],"outputs":[]}'
    fake = cluster(JobResult(0, inspected), JobResult(0, '{"schema":"fairlead.profile/v1","batches":[]}'))
    monkeypatch.setattr(hooks, "measured_on", lambda _now: [("nvidia.com/gpu",)])
    version = register(status=Status.PENDING)
    lineage = {"accelerator": "nvidia.com/mig-1g.10gb", "products": ["NVIDIA-A100"]}
    ModelVersion.objects.filter(pk=version.pk).update(lineage=lineage)
    tasks.check_version(version.pk)
    assert [(job.resources.accelerator, job.resources.products) for job in fake.jobs] == [
        ("nvidia.com/mig-1g.10gb", ("NVIDIA-A100",))
    ] * 2


@pytest.mark.django_db(transaction=True)
def test_the_claim_is_renewed_for_as_long_as_the_runtime_takes(
    register: Register, cluster: Callable[..., FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_RENEW_EVERY_S", 0.01)
    version = register(status=Status.PENDING)
    held_until = []

    class SlowCluster(FakeCluster):
        def run(self, job: Job) -> JobResult:
            deadline = time.monotonic() + 10
            while len(set(held_until)) < 4 and time.monotonic() < deadline:
                held_until.append(ModelVersion.objects.values_list("next_check_at", flat=True).get(pk=version.pk))
            return JobResult(2, '{"schema":"fairlead.inspect/v1","error":"no"}')

    monkeypatch.setattr(hooks, "job_driver", lambda _now: [SlowCluster()])
    tasks.check_version(version.pk)
    assert len(set(held_until)) == 4
    assert held_until == sorted(held_until)
    version.refresh_from_db()
    assert (version.status, version.next_check_at) == ("REJECTED", None)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hold-check")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        pytest.param(Unavailable("no process could be started"), "no process could be started", id="no cluster"),
        pytest.param(
            JobResult(124, "", "the inspect of the model did not finish within 7 s"),
            "the inspect of the model did not finish within 7 s",
            id="a timeout",
        ),
        pytest.param(ValueError("a bug"), "the check failed with ValueError: a bug", id="a fault of ours"),
    ],
)
def test_a_check_that_learns_nothing_is_repeated_by_the_sweep_and_given_up_in_the_end(
    register: Register,
    cluster: Callable[..., FakeCluster],
    hints_run_at_once: None,
    end: JobResult | Exception,
    reason: str,
) -> None:
    fake = cluster(*[end] * MAX_ATTEMPTS)
    version = register(status=Status.PENDING)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        version.refresh_from_db()
        assert (version.status, version.reason, version.attempts) == (
            "PENDING",
            "" if attempt == 1 else reason,
            attempt - 1,
        )
        tasks.sweep()
        tasks.sweep()  # not due: nothing happens
        assert len(fake.jobs) == attempt
        ModelVersion.objects.filter(status="PENDING").update(next_check_at=timezone.now())
    version.refresh_from_db()
    assert version.status == "REJECTED"
    assert reason in version.reason
    tasks.sweep()
    assert len(fake.jobs) == MAX_ATTEMPTS


@pytest.mark.django_db
def test_the_sweep_finds_every_version_that_a_lost_hint_left_behind(
    register: Register, cluster: Callable[..., FakeCluster], hints_run_at_once: None
) -> None:
    refused = JobResult(2, '{"schema":"fairlead.inspect/v1","error":"no"}')
    cluster(*[refused] * 5)
    for content in "abcde":
        register(content=content, status=Status.PENDING)
    tasks.sweep()
    assert set(ModelVersion.objects.values_list("status", "reason")) == {("REJECTED", "no")}


@pytest.mark.django_db
def test_a_version_somebody_else_checks_is_left_alone(register: Register, cluster: Callable[..., FakeCluster]) -> None:
    version = register(status=Status.PENDING)
    ModelVersion.objects.filter(pk=version.pk).update(next_check_at=timezone.now() + timedelta(minutes=1))
    fake = cluster()
    tasks.check_version(version.pk)
    tasks.check_version(version.pk + 1000)
    assert fake.jobs == []


def test_a_folder_is_ready_with_what_its_configuration_says(
    api: Api, store_folder: Path, linear_model: Onnx, hints_run_at_once: None
) -> None:
    content = io.BytesIO()
    files = {"digits/config.pbtxt": b'name: "another"\nmax_batch_size: 7\n', "digits/1/model.onnx": linear_model()}
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    client = api(Scope.WRITE)
    address = "/api/v1/models/linear/versions"
    sent = client.post(f"{address}?filename=digits.tar", content.getvalue(), content_type="application/octet-stream")
    assert sent.status_code == 201
    version = client.get(f"{address}/1").json()
    assert (version["status"], version["reason"]) == ("READY", "")
    assert max(batch["batch_size"] for batch in version["profile"]["batches"]) == 7
    with tarfile.open(fileobj=io.BytesIO(b"".join(client.get(f"{address}/1/artifact")))) as back:
        assert sorted(back.getnames()) == ["1/model.onnx", "config.pbtxt"]


def test_a_version_is_measured_on_slices_too_and_what_cannot_be_keeps_it_from_nothing(
    cluster: Callable[..., FakeCluster], register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/gpu")
    monkeypatch.setattr(hooks, "measured_on", lambda _now: [on])
    device = {"kind": "gpu", "name": "NVIDIA H100 80GB HBM3", "mig_profile": "1g.10gb"}
    on_slice = JobResult(0, json.dumps({"schema": "fairlead.profile/v1", "batches": [], "device": device}))
    inspected = JobResult(0, '{"schema":"fairlead.inspect/v1","platform":"p","inputs":[],"outputs":[]}')
    profiled = JobResult(0, '{"schema":"fairlead.profile/v1","memory_bytes":10,"batches":[]}')
    fake = cluster(inspected, profiled, on_slice, JobResult(1, "", "no slice was free"), Unavailable("it is away"))
    version = register(status=Status.PENDING)

    tasks.check_version(version.pk)

    version.refresh_from_db()
    assert version.status == Status.READY.value
    assert version.profile["memory_bytes"] == 10
    assert version.profile["on"] == [
        {"resource": on[0], "batches": [], "device": device},
        {"resource": on[1], "problem": "no slice was free"},
        {"resource": on[2], "problem": "it is away"},
    ]
    assert [job.resources.accelerator for job in fake.jobs] == ["", "", *on]


class FakeChecker:
    """Answers as it is told, one answer a job; None where the model needs a process of its own."""

    def __init__(self, answers: list[JobResult | None], then: Callable[[], None] = lambda: None) -> None:
        self.runs, self.jobs = True, list[Job]()
        self._answers, self._then = answers, then

    def answers_with(self, answers: list[JobResult | None]) -> None:
        self._answers, self._then = answers, lambda: None

    def run(self, job: Job) -> JobResult | None:
        self.jobs.append(job)
        answer = self._answers.pop(0)
        if not self._answers:
            self._then()
        return answer


class FakeClusterThatChecksMany(FakeCluster):
    """A cluster with a checker."""

    def __init__(self, checker: FakeChecker, *ends: JobResult | Exception) -> None:
        super().__init__(*ends)
        self.checkers = [checker]

    @contextmanager
    def checker(self, timeout_s: float) -> Iterator[FakeChecker]:
        yield self.checkers.pop(0)


INSPECTED = JobResult(0, '{"schema":"fairlead.inspect/v1","platform":"p","inputs":[],"outputs":[]}')
PROFILED = JobResult(0, '{"schema":"fairlead.profile/v1","batches":[]}')
REFUSED = JobResult(2, '{"schema":"fairlead.inspect/v1","error":"no"}')


@pytest.fixture
def four(register: Register, settings: Settings) -> list[ModelVersion]:
    settings.MODEL_CHECKS_AT_ONCE = 1
    return [register(content=content, status=Status.PENDING) for content in "abcd"]


def statuses() -> list[tuple[str, int]]:
    return list(ModelVersion.objects.order_by("pk").values_list("status", "attempts"))


@pytest.mark.django_db(transaction=True)
def test_versions_that_wait_are_checked_by_one_process(
    four: list[ModelVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = FakeChecker([INSPECTED, PROFILED, REFUSED, None, None, INSPECTED, PROFILED])
    driver = FakeClusterThatChecksMany(checker, INSPECTED, PROFILED)
    monkeypatch.setattr(hooks, "job_driver", lambda _now: [driver])
    tasks.check_version(four[0].pk)
    assert statuses() == [("READY", 1), ("REJECTED", 1), ("READY", 1), ("READY", 1)]
    alone = four[2].artifact_uri
    assert [job.artifact_uri for job in driver.jobs] == [alone, alone], "it needs a process of its own"
    assert driver.in_transaction == [False, False]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("end", ["the time is over", "the worker ends", "the checker broke"])
def test_what_a_batch_does_not_come_to_waits_as_before(
    four: list[ModelVersion], monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    def over() -> None:
        if end == "the time is over":
            monkeypatch.setattr(tasks, "_BATCH_S", -1.0)
        elif end == "the worker ends":
            monkeypatch.setattr(tasks, "is_stopping", lambda: True)
        else:
            checker.runs = False

    checker = FakeChecker([INSPECTED, PROFILED], over)
    driver = FakeClusterThatChecksMany(checker)
    monkeypatch.setattr(hooks, "job_driver", lambda _now: [driver])
    tasks.check_version(four[0].pk)
    assert statuses() == [("READY", 1), *[("PENDING", 0)] * 3]
    assert not ModelVersion.objects.exclude(claim=None).exists()
    driver.checkers = [FakeChecker([REFUSED] * 3)]
    monkeypatch.setattr(tasks, "_BATCH_S", 60.0)
    monkeypatch.setattr(tasks, "is_stopping", lambda: False)
    tasks.check_version(four[1].pk)
    assert statuses() == [("READY", 1), *[("REJECTED", 1)] * 3]


@pytest.mark.django_db(transaction=True)
def test_a_check_that_is_repeated_has_a_process_of_its_own(
    four: list[ModelVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    ModelVersion.objects.filter(pk=four[0].pk).update(attempts=1)
    checker = FakeChecker([REFUSED] * 3)
    driver = FakeClusterThatChecksMany(checker, REFUSED)
    monkeypatch.setattr(hooks, "job_driver", lambda _now: [driver])
    tasks.check_version(four[0].pk)
    assert [job.artifact_uri for job in driver.jobs] == [four[0].artifact_uri]
    assert len(checker.jobs) == 3


@pytest.mark.django_db(transaction=True)
def test_a_version_that_another_worker_has_by_now_is_left_to_it(
    four: list[ModelVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken() -> None:
        others = timezone.now() + timedelta(minutes=1)
        ModelVersion.objects.filter(pk=four[1].pk).update(claim=new_id(), attempts=2, next_check_at=others)
        ModelVersion.objects.filter(pk=four[2].pk).delete()
        checker.answers_with([REFUSED])

    checker = FakeChecker([INSPECTED, PROFILED], taken)
    driver = FakeClusterThatChecksMany(checker)
    monkeypatch.setattr(hooks, "job_driver", lambda _now: [driver])
    tasks.check_version(four[0].pk)
    assert statuses() == [("READY", 1), ("PENDING", 2), ("REJECTED", 1)]


@pytest.mark.django_db(transaction=True)
def test_many_models_are_ready_by_one_process(
    api: Api, store_folder: Path, linear_model: Onnx, settings: Settings
) -> None:
    """With the real runtime; hints do not reach a broker here."""
    settings.MODEL_CHECKS_AT_ONCE = 1
    client = api(Scope.WRITE)
    for seed in range(6):
        address = f"/api/v1/models/linear-{seed}/versions?filename=model.onnx"
        content = linear_model(seed=seed, opset=99 if seed == 3 else 17)
        assert client.post(address, content, content_type="application/octet-stream").status_code == 201
    first = ModelVersion.objects.order_by("pk")[0]
    tasks.check_version(first.pk)
    found = ModelVersion.objects.order_by("pk")
    assert [version.status for version in found] == ["READY"] * 3 + ["REJECTED"] + ["READY"] * 2
    assert "uses opset 99 of ai.onnx; this runtime supports" in found[3].reason
    assert found[0].signature["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
