"""Anything may happen at any time: whatever does, clients are safe."""

import random
from collections.abc import Callable

import pytest
from django.db.models import Count
from django.utils import timezone

from common.errors import FairleadError, Unavailable
from deployments.domain.phases import Phase
from deployments.models import InferenceService, Revision, Rollout
from deployments.selectors import service_detail
from deployments.services import rollout_abort, rollout_promote, rollout_retry, service_rollback
from events.models import Event
from integrations.clusters.base import Desired, ReplicaPhase
from tests.deployments._support.platform import Platform


class Walk:
    """One random life of a service, with what has to hold checked at every wish the cluster is told."""

    def __init__(self, platform: Platform, seed: int) -> None:
        self.platform, self.random, self.version = platform, random.Random(seed), 1
        platform.live()
        platform.policy(name="asking", steps=[{"weight": 20, "pause": True}, {"weight": 60, "hold": "4s"}])
        platform.policy(name="shadow", strategy="shadow", steps=[{"weight": 20}, {"weight": 60, "hold": "4s"}])
        platform.policy(
            name="progressive",
            steps=[
                {"mirror": 30, "hold": "2s"},
                {"match": [{"header": "x-group", "exact": "beta"}], "pause": True},
                {"match": [{"header": "x-group", "exact": "beta"}], "weight": 20, "analysis": {"minRequests": 50}},
                {"weight": 60},
            ],
            sessionAffinity={"header": "x-session"},
            analysis={"minRequests": 50},
            deadline="10m",
            onDeadline=self.random.choice(["pause", "abort"]),
        )
        platform.policy(name="switch", strategy="blueGreen", steps=[{"hold": "4s"}])
        platform.cluster.on_apply = self.check

    def check(self, desired: Desired) -> None:
        weights = {revision.name: revision.weight_percent for revision in desired.revisions}
        assert sum(weights.values()) == 100
        stable = Revision.objects.get(role="stable").name
        assert len([name for name, weight in weights.items() if weight and name != stable]) <= 1
        seen = self.platform.cluster.observed["default", "digits"]
        for name, weight in weights.items():
            if weight and name != stable:
                there = seen.revision(name)
                assert there is not None
                assert any(replica.phase is ReplicaPhase.READY for replica in there.replicas), (
                    "weight only to what is ready"
                )
        copies = {revision.name: revision.mirror_percent for revision in desired.revisions if revision.mirror_percent}
        assert len(copies) <= 1
        for name in copies:
            there = seen.revision(name)
            assert weights[name] == 0, "a shadow has no clients"
            assert there is not None
            assert there.ready_replicas, "copies only to what is ready"
        for revision in desired.revisions:
            if revision.match:
                there = seen.revision(revision.name)
                assert revision.name not in {stable, *copies}, "a group is the canary's, and nothing is copied to it"
                assert there is not None
                assert there.ready_replicas, "a group only to what is ready"
        if desired.affinity is not None:
            assert desired.affinity.revision != stable
        if desired.preview:
            assert weights[desired.preview] in (0, 100), "clients see nothing or all of it"
        newest = Rollout.objects.order_by("-id").first()
        if newest is not None and newest.phase in (Phase.DEGRADED, Phase.ABORTED):
            assert weights[stable] == 100
            assert not copies
            assert not any(revision.match for revision in desired.revisions)

    def step(self) -> None:
        acts: list[Callable[[], object]] = [self.turn] * 6 + [
            self.start,
            self.serve,
            self.serve,
            self.trouble,
            self.person,
            self.go_back,
        ]
        try:
            self.random.choice(acts)()
        except Unavailable:
            assert self.platform.cluster.away
        except FairleadError:
            return

    def say_why(self) -> None:
        service = service_detail(namespace="default", name="digits", now=timezone.now())
        rollout = service.rollout
        if rollout is None or Phase(rollout.phase).is_finished:
            assert rollout is None or rollout.waits is None
            return
        for wait in (rollout.waits, service.waits):
            assert wait is not None, "a rollout in progress always waits for something"
            assert wait.condition
            assert wait.evidence
            assert wait.changes_when
            assert wait.since <= self.platform.clock()

    def turn(self) -> None:
        self.platform.turn(seconds=self.random.choice([1, 2, 5, 40]), settle=self.random.random() < 0.8)

    def start(self) -> None:
        self.version += 1
        self.platform.version(self.version)
        if self.random.random() < 0.5:
            self.platform.start(
                str(self.version), self.random.choice([None, "asking", "shadow", "switch", "progressive"])
            )
        else:
            self.platform.apply(
                uri=f"models:/digits/{self.version}", policy=self.random.choice(["careful", "shadow", None])
            )

    def serve(self) -> None:
        for name, weight in self.platform.cluster.weights().items():
            requests = 10 * weight
            bad = self.random.choice([0, 0, 0, requests // 2])
            self.platform.metrics.serve(name, requests, failed=bad)

    def trouble(self) -> None:
        cluster, names = self.platform.cluster, list(self.platform.cluster.weights())
        match self.random.randrange(5):
            case 0:
                cluster.broken[self.random.choice(names)] = "out of memory"
            case 1:
                cluster.broken.clear()
            case 2:
                cluster.crash(self.random.choice(names))
            case 3:
                cluster.away = self.random.choice(["", "", "the agent is silent"])
            case _:
                self.platform.metrics.away = self.random.choice(["", "", "the metrics cannot be read"])

    def person(self) -> None:
        rollout = Rollout.objects.order_by("-id").first()
        if rollout is not None:
            verb = self.random.choice([rollout_promote, rollout_promote, rollout_abort, rollout_retry])
            verb(rollout_id=rollout.pk, actor="alice", now=self.platform.clock())

    def go_back(self) -> None:
        names = [None, *Revision.objects.values_list("name", flat=True)]
        revision = self.random.choice(names)
        service_rollback(
            namespace="default", name="digits", revision=revision, actor="alice", now=self.platform.clock()
        )


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 20))])
def test_whatever_happens_clients_are_safe(platform: Platform, seed: int) -> None:
    walk = Walk(platform, seed)
    for _ in range(120):
        walk.step()
        walk.say_why()
    platform.cluster.away = platform.metrics.away = ""
    platform.cluster.broken.clear()
    for _ in range(4):
        platform.turn()
    assert InferenceService.objects.get().phase in ("Ready", "Progressing")
    assert Revision.objects.filter(role="stable").count() == 1
    assert Rollout.objects.filter(phase__in=("Pending", "Progressing", "Paused")).count() <= 1
    numbers = list(Event.objects.exclude(service=None).order_by("id").values_list("seq", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    assert Rollout.objects.aggregate(walked=Count("id"))["walked"] > 2, "the walk went somewhere"
