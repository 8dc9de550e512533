"""Memory of services between turns: what is remembered is what the rows are, and what others changed is read."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models import Model

from deployments.models import InferenceService
from deployments.reconcile import reconciler
from deployments.reconcile.memory import Memory
from deployments.reconcile.service_change import columns_of, load
from deployments.services import rollout_abort
from tests.deployments._support.platform import Platform

OF_LEASES = {"changed_at", "lease_expires_at", "lease_owner", "settled"}


def rows(memory: Memory) -> Iterator[tuple[Model, Model]]:
    """Yield each remembered row with the same row as it is read."""
    for service_id, known in memory._known.items():
        read = load(service_id, now=known.change.now)
        assert [row.pk for row in known.change.revisions] == [row.pk for row in read.revisions]
        yield known.change.service, read.service
        yield from zip(known.change.revisions, read.revisions, strict=True)
        assert (known.change.newest is None) == (read.newest is None)
        if known.change.newest is not None and read.newest is not None:
            yield known.change.newest, read.newest


def is_true(memory: Memory) -> int:
    """Fail where what is remembered differs from what is read; returns the number of rows compared."""
    number = 0
    for remembered, read in rows(memory):
        left, right = columns_of_known(remembered), columns_of_known(read)
        assert left == {name: right[name] for name in left}
        number += 1
    return number


def columns_of_known(row: Model) -> dict[str, object]:
    if isinstance(row, InferenceService):
        return {name: each for name, each in row.__dict__.items() if name in FIELDS}
    return columns_of(row)


FIELDS = {field.attname for field in InferenceService._meta.concrete_fields} - OF_LEASES


def turns(platform: Platform, count: int, traffic: Callable[[], object]) -> int:
    compared = 0
    for _ in range(count):
        traffic()
        platform.turn()
        compared += is_true(platform.memory)
    return compared


POLICIES: dict[str, dict[str, Any]] = {
    "canary": {"steps": [{"weight": 20, "hold": "8s", "analysis": {"minRequests": 100}}, {"weight": 60, "hold": "6s"}]},
    "background": {
        "analysis": {"minRequests": 50},
        "steps": [{"weight": 20, "hold": "8s"}, {"weight": 60, "hold": "6s", "analysis": {"minRequests": 100}}],
    },
    "blueGreen": {"strategy": "blueGreen", "steps": [{"hold": "6s"}]},
    "shadow": {"strategy": "shadow", "steps": [{"weight": 50, "hold": "8s", "analysis": {"minRequests": 20}}]},
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("failed", [0, 40])
def test_what_is_remembered_is_what_the_rows_are_after_each_turn_of_a_rollout(
    platform: Platform, policy: str, failed: int
) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="other", scaleDownDelay="4s", progressDeadline="2m", **_of(policy))
    platform.start("2", "other")
    assert turns(platform, 25, lambda: platform.traffic(200, failed=failed)) > 4


def _of(policy: str) -> dict[str, Any]:
    found = dict(POLICIES[policy])
    return {"strategy": "canary", **found}


def test_what_is_remembered_is_what_the_rows_are_while_replicas_follow_the_load(platform: Platform) -> None:
    platform.live(maxReplicas=4, scaleMetric="concurrency", scaleTarget=10)
    loads = iter([30, 30, 30, 5, 1, 1, 1, 25, 25, 1, 1, 1] * 2)

    def load_changes() -> None:
        platform.metrics.in_flight["digits-00001"] = next(loads)
        platform.clock.go_on(40)

    assert turns(platform, 24, load_changes) > 4


def at_a_step(platform: Platform) -> InferenceService:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    platform.turn()
    service = InferenceService.objects.get()
    assert platform.memory.has(service.pk)
    return service


def test_what_a_person_does_between_two_turns_is_read(platform: Platform) -> None:
    at_a_step(platform)
    rollout_abort(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.turn()
    assert platform.rollout().phase == "Aborted"
    assert platform.cluster.weights()["digits-00001"] == 100
    is_true(platform.memory)


def test_what_another_process_did_in_a_turn_is_read(platform: Platform) -> None:
    service = at_a_step(platform)
    other = Platform(platform.cluster, platform.metrics, platform.clock)
    other.turn()
    assert platform.memory.recall(service.pk, now=platform.clock()) is None


def test_a_service_is_read_again_after_a_minute(platform: Platform) -> None:
    now = [0.0]
    platform.memory = Memory(lambda: now[0])
    service = at_a_step(platform)
    now[0] += 59
    assert platform.memory.follows_nothing(service.pk)
    assert platform.memory.recall(service.pk, now=platform.clock()) is not None
    platform.turn()
    now[0] += 61
    assert not platform.memory.follows_nothing(service.pk)
    assert platform.memory.recall(service.pk, now=platform.clock()) is None


def test_a_turn_that_fails_leaves_nothing_to_remember(platform: Platform) -> None:
    service = at_a_step(platform)
    platform.clock.go_on(2)
    with pytest.raises(RuntimeError):
        reconciler.tick(
            service.pk, reconciler.Outside(platform.cluster, broken, platform.clock, memory=platform.memory)
        )
    assert not platform.memory.has(service.pk)


def broken(*_: object) -> Any:
    raise RuntimeError


def test_a_settled_service_is_not_remembered(platform: Platform) -> None:
    service = platform.live()
    for _ in range(4):
        platform.turn()
    assert not platform.memory.has(service.pk)


def test_a_service_that_follows_an_alias_is_known_to(platform: Platform) -> None:
    platform.version(1)
    version = platform.version(2)
    platform.alias(version)
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.turn()
    service = InferenceService.objects.get()
    assert platform.memory.has(service.pk)
    assert not platform.memory.follows_nothing(service.pk)
