"""Kinds of leased jobs: how little each is made of, and a new one that runs through the kit."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, models
from django.db.models import Q
from django.test.utils import isolate_apps
from django.utils import timezone

from common.errors import Conflict, InvalidInput, Unavailable
from integrations.clusters import base
from integrations.clusters.base import Job, JobResult
from jobs.models import ClaimedJob
from jobs.services import claim as claims
from jobs.services import kinds, run_claim
from jobs.services.kinds import JobKind, Pods

PLATFORM = Path(__file__).parents[3] / "platform"
FILES = {
    "build": ("model_jobs/builds/**/*.py",),
    "tuning": ("model_jobs/tunings/**/*.py",),
    "trial": ("model_jobs/trials/**/*.py",),
    "replay": ("recordings/*/replays.py",),
    "import": ("registry/*/import*.py",),
}
"""Where the files of one kind alone lie: order and report, the kind with its result writer, queries, API, pages."""
MOST = 6


def test_every_kind_is_made_of_a_few_files() -> None:
    assert {kind.noun for kind in kinds.kinds()} == set(FILES)
    for noun, patterns in FILES.items():
        found = sorted(
            path.relative_to(PLATFORM).as_posix()
            for pattern in patterns
            for path in PLATFORM.glob(pattern)
            if path.name != "__init__.py"
        )
        assert 0 < len(found) <= MOST, (noun, found)


def test_the_kit_knows_no_kind() -> None:
    for path in PLATFORM.glob("jobs/**/*.py"):
        for noun in FILES:
            assert f"{noun}s." not in path.read_text(), f"{path.name} names {noun}s"


class Cluster:
    """A cluster whose runtime counts letters: it reports one line, then the end."""

    def __init__(self, result: JobResult | Exception) -> None:
        self.result = result
        self.jobs: list[Job] = []

    def run(self, job: Job, read: Any) -> JobResult:
        self.jobs.append(job)
        read("half")
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Counted:
    """The table of a new kind, and the kind: all that a new one needs beside what people see of it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.ended: list[tuple[str, str]] = []
        self.kind: JobKind[Any, Job, int] = JobKind(
            noun="count",
            model=model,
            order=self.order,
            work=run_claim.as_job(progress=lambda line: {"stage": line}, report=lambda result, _row: read(result)),
            write=self.write,
            progress={"stage": ""},
            beside=lambda _row: Q(),
            cluster_of=lambda _row: 7,
            ended=lambda row, state, _now: self.ended.append((row.word, state.status.value)),
            related=(),
            pods=Pods.NONE,
            kept=timedelta(days=1),
        )

    def order(self, row: Any, claim_id: UUID) -> Job:
        """Return the job with its command line."""
        return Job(base.JobKind.INSPECT, "file:///model", 10.0, arguments=(row.word,), result_id=str(claim_id))

    def write(self, row: Any, letters: int, _now: Any) -> None:
        if letters > 100:
            raise Conflict("nobody counts so far")
        row.letters = letters

    def asked(self, word: str = "word") -> Any:
        now = timezone.now()
        return self.model.objects.create(word=word, next_try_at=now, created_at=now, created_by="alice")

    def run(self, row: Any, result: JobResult | Exception) -> Cluster:
        cluster = Cluster(result)
        run_claim.run(self.kind, row.pk, lambda _id: cluster, clock=timezone.now)  # type: ignore[arg-type, return-value]
        row.refresh_from_db()
        return cluster


def read(result: JobResult) -> int:
    """Return the report of a count."""
    if result.exit_code:
        raise InvalidInput(result.message)
    return int(result.output)


@pytest.fixture
def counted(transactional_db: None) -> Iterator[Counted]:
    with isolate_apps("jobs"):

        class Count(ClaimedJob):
            word = models.CharField(max_length=20)
            letters = models.IntegerField(default=0)
            stage = models.CharField(max_length=20, default="")

            class Meta:
                app_label = "jobs"

        with connection.schema_editor() as editor:
            editor.create_model(Count)
        try:
            yield Counted(Count)
        finally:
            with connection.schema_editor() as editor:
                editor.delete_model(Count)


def test_a_new_kind_runs_to_its_end(counted: Counted) -> None:
    row = counted.asked()
    assert claims.due(counted.kind, now=timezone.now(), limit=5) == [row.pk]
    cluster = counted.run(row, JobResult(0, "4"))
    assert (row.status, row.letters, row.claim, row.attempts) == ("DONE", 4, None, 1)
    assert row.finished_at is not None
    assert [job.arguments for job in cluster.jobs] == [("word",)]
    assert counted.ended == [("word", "DONE")]
    assert claims.due(counted.kind, now=timezone.now(), limit=5) == []
    assert counted.run(row, JobResult(0, "5")).jobs == [], "it is not begun again"


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [
        pytest.param(JobResult(2, "", "no letters"), "FAILED", "no letters", id="impossible"),
        pytest.param(JobResult(0, "101"), "FAILED", "nobody counts so far", id="refused when it is written"),
        pytest.param(Unavailable("the cluster is away"), "PENDING", "the cluster is away", id="broke off"),
        pytest.param(ValueError("a bug"), "PENDING", "it failed with ValueError", id="a bug of ours"),
    ],
)
def test_a_new_kind_ends_as_every_kind(
    counted: Counted, result: JobResult | Exception, status: str, reason: str
) -> None:
    row = counted.asked()
    counted.run(row, result)
    assert (row.status, row.claim) == (status, None)
    assert row.reason.startswith(reason)


def test_a_new_kind_is_given_up_stopped_and_forgotten_as_every_kind(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, stopped = counted.asked(), counted.asked("other")
    for _ in range(4):
        counted.run(row, Unavailable("away"))
    assert (row.status, row.attempts) == ("FAILED", 3)
    assert row.reason == "it broke off 3 times, the last time because away"
    claim = claims.begin(counted.kind, stopped.pk, now=timezone.now(), lease=timedelta(seconds=20))
    assert claim is not None
    claims.stop(counted.kind, stopped, now=timezone.now())
    assert claims.end(counted.kind, claim, 4, now=timezone.now()) is None, "its worker has lost the claim"
    monkeypatch.setattr(claims, "kinds", lambda: [counted.kind])
    assert claims.jobs_forget(now=timezone.now()) == 0
    assert claims.jobs_forget(now=timezone.now() + timedelta(days=2)) == 2


def test_one_at_a_time(counted: Counted) -> None:
    first, second = counted.asked(), counted.asked()
    lease = timedelta(seconds=20)
    assert claims.begin(counted.kind, first.pk, now=timezone.now(), lease=lease) is not None
    assert claims.begin(counted.kind, second.pk, now=timezone.now(), lease=lease) is None
