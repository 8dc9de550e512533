"""Several workers and people at the same service at the same time, on threads with connections of their own."""

import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from django.db import connection

from common.errors import FairleadError
from deployments.domain.phases import Phase
from deployments.models import InferenceService, Rollout
from deployments.reconcile.reconciler import Outcome, Outside, tick
from deployments.services import model_follow, rollout_abort
from events.models import Event
from integrations.clusters.base import Observed, Sample
from tests.deployments._support.ledger import Ledger
from tests.deployments._support.platform import Platform


def _together(*acts: Callable[[], object]) -> list[object]:
    """Run all at the same time, each on a thread and a database connection of its own; return what they returned."""
    gate = threading.Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def run(index: int, act: Callable[[], object]) -> None:
        try:
            gate.wait(timeout=10)
            results[index] = act()
        except FairleadError as error:
            results[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index, act)) for index, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return results


@pytest.fixture
def racing(transactional_db: None) -> Platform:
    platform = Platform()
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    return platform


def test_two_reconcilers_never_tick_a_service_at_the_same_time(racing: Platform) -> None:
    service = InferenceService.objects.get()
    inside, most = 0, 0
    lock = threading.Lock()

    def busy(observed: Observed) -> Sequence[Sample]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        overlap.wait(timeout=0.05)
        with lock:
            inside -= 1
        return racing.metrics(observed)

    overlap = threading.Event()
    outside = Outside(racing.cluster, busy, racing.clock)
    outcomes = _together(*[lambda: tick(service.pk, outside)] * 4)
    assert most == 1
    assert Outcome.DONE in outcomes
    assert set(outcomes) <= {Outcome.DONE, Outcome.BUSY}


def test_a_stale_reconciler_cannot_undo_what_a_newer_one_recorded_or_applied(racing: Platform) -> None:
    """The first reads, then loses its lease; the second sees the failure and rolls back; then the first goes on."""
    service = InferenceService.objects.get()
    racing.bad_time(failed=8, until_percent=80)
    racing.clock.go_on(2)
    first_has_read, second_is_done = threading.Event(), threading.Event()

    def slow(observed: Observed) -> Sequence[Sample]:
        samples = racing.metrics(observed)
        first_has_read.set()
        assert second_is_done.wait(timeout=20)
        return samples

    def second() -> object:
        assert first_has_read.wait(timeout=20)
        InferenceService.objects.update(lease_expires_at=racing.clock())
        racing.metrics.serve("digits-00001", 360)
        racing.metrics.serve("digits-00002", 40, failed=40)
        outcome = tick(service.pk, racing.outside)
        second_is_done.set()
        return outcome

    outside = Outside(racing.cluster, slow, racing.clock)
    assert _together(lambda: tick(service.pk, outside), second) == [Outcome.OVERTAKEN, Outcome.DONE]
    assert Rollout.objects.get().phase == Phase.DEGRADED
    assert racing.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}


def test_people_and_reconcilers_together_leave_events_numbered_without_gaps(racing: Platform) -> None:
    service, rollout = InferenceService.objects.get(), Rollout.objects.get()
    for number in (3, 4, 5):
        racing.version(number)
        _together(
            lambda: tick(service.pk, racing.outside),
            lambda: rollout_abort(rollout_id=rollout.pk, actor="alice", now=racing.clock()),
            lambda: rollout_abort(rollout_id=rollout.pk, actor="bob", now=racing.clock()),
            partial(racing.start, str(number)),
        )
        racing.turn()
    numbers = list(Event.objects.filter(service=service).order_by("id").values_list("seq", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    aborted = Event.objects.filter(rollout=rollout, kind="RolloutAborted")
    assert aborted.count() == 1, "one of the two aborts was refused"


def test_of_two_that_start_a_rollout_at_the_same_time_one_is_refused_or_superseded(racing: Platform) -> None:
    racing.version(3)
    outcomes = _together(lambda: racing.start("3"), lambda: racing.start("3"))
    assert sum(isinstance(outcome, Rollout) for outcome in outcomes) == 1
    assert Rollout.objects.filter(finished_at=None).count() == 1


def test_two_workers_race_through_a_whole_rollout_and_it_ends_as_with_one(racing: Platform) -> None:
    service, ledger = InferenceService.objects.get(), Ledger(racing)
    for _ in range(40):
        if Rollout.objects.get().phase == Phase.HEALTHY:
            break
        racing.traffic()
        racing.clock.go_on(2)
        racing.cluster.settle()
        outcomes = _together(*[lambda: tick(service.pk, racing.outside)] * 2)
        assert Outcome.DONE in outcomes
        assert set(outcomes) <= {Outcome.DONE, Outcome.BUSY}
        ledger.note_recorded()
    assert Rollout.objects.get().phase == Phase.HEALTHY
    ledger.check()
    assert [weights for _, weights, _ in dict.fromkeys(ledger.applied)][-1] == (("digits-00002", 100),)


def test_an_alias_that_several_workers_follow_has_moved_once(transactional_db: None) -> None:
    platform = Platform()
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2))
    follow = partial(model_follow, service_id=InferenceService.objects.get().pk, now=platform.clock())

    assert _together(*[follow] * 6) == [None] * 6

    assert platform.events().count("AliasMoved") == 1
    assert Rollout.objects.count() == 1
