"""A worker killed at every line of the reconciler that a service's life executes: the next tick repairs it.

Each scenario is lived again and again. In every turn some workers are killed first, each at a line where none
was killed in that situation yet, and another takes over once the dead one's lease is out. It ends when no line is left.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field

import pytest
from django.db import transaction

from common.errors import Unavailable
from deployments import reconciler, recording, replicas
from deployments.models import Event, InferenceService, Revision, Rollout
from deployments.phases import Phase
from deployments.services import service_delete
from tests.deployments.conftest import Platform
from tests.deployments.killer import Line, killed_at
from tests.deployments.ledger import Ledger

FILES = {str(module.__file__) for module in (reconciler, recording, replicas)}
MOST_LIVES = 500
MOST_IN_A_ROW = 12
Situation = tuple[object, ...]


@dataclass
class Deaths:
    """At which lines a worker was killed, in which situation."""

    done: set[tuple[Situation, Line]] = field(default_factory=set)

    def turn(self, platform: Platform) -> None:
        """Tick with workers one after the other, each killed at a line where none was before in this situation."""
        for _ in range(MOST_IN_A_ROW):
            if not InferenceService.objects.exists():
                return
            situation = _situation()
            with killed_at(FILES, lambda line, at=situation: (at, line) not in self.done) as lines:
                with suppress(Unavailable):
                    platform.turn()
                return
            self.done.add((situation, lines[-1]))
            # Its lease runs out. Were the clock to go on for it, most of the rollout would count as unseen.
            InferenceService.objects.update(lease_expires_at=platform.clock())


def _situation() -> Situation:
    """Return what decides which way a turn goes."""
    service = InferenceService.objects.first()
    rollout = Rollout.objects.order_by("-id").first()
    running = Revision.objects.filter(stopped_at=None).order_by("number")
    roles = tuple(running.values_list("role", "replicas"))
    if rollout is None:
        return (service and service.phase, roles)
    return (service and service.phase, rollout.phase, rollout.step_index, rollout.confirmed_at is None, roles)


@dataclass
class Life:
    """One life of a service on a platform of its own."""

    platform: Platform
    deaths: Deaths
    ledger: Ledger

    def turn(self) -> None:
        """One killed turn and one that is not."""
        for tick in (lambda: self.deaths.turn(self.platform), self.platform.turn):
            with suppress(Unavailable):
                tick()
            self.ledger.note_recorded()

    def until(self, look: Callable[[], object], each: Callable[[], object] = lambda: None) -> None:
        for _ in range(40):
            if look():
                return
            each()
            self.turn()
        pytest.fail(f"never came true: {self.platform.view()}")

    def phase_is(self, *phases: Phase) -> Callable[[], bool]:
        return lambda: self.platform.rollout().phase in phases


def promotes(life: Life) -> None:
    """A rollout that ends Healthy; the old revision is stopped."""
    life.until(life.phase_is(Phase.HEALTHY), each=life.platform.traffic)
    assert life.platform.cluster.weights()["digits-00002"] == 100
    life.until(lambda: Revision.objects.get(number=1).stopped_at is not None)


def rolls_back(life: Life) -> None:
    """A rollout whose canary fails at its second step ends Degraded with everything back at stable."""
    life.until(lambda: life.platform.rollout().step_index == 1, each=life.platform.traffic)
    life.until(life.phase_is(Phase.DEGRADED), each=lambda: life.platform.traffic(failed=100))
    life.until(lambda: life.platform.cluster.weights()["digits-00001"] == 100)


def waits_for_its_cluster(life: Life) -> None:
    """A cluster that is away for some turns, and a replica that crashes, change nothing of how it ends."""
    life.until(lambda: life.platform.rollout().weight, each=life.platform.traffic)
    life.platform.cluster.away = "the agent is silent"
    for _ in range(3):
        life.turn()
    life.platform.cluster.away = ""
    life.platform.cluster.crash("digits-00001")
    life.until(life.phase_is(Phase.HEALTHY), each=life.platform.traffic)


def is_deleted(life: Life) -> None:
    """A service that is deleted in the middle of its rollout goes, and nothing is left of it."""
    life.until(lambda: life.platform.rollout().weight)
    service_delete(namespace="default", name="digits", actor="alice", now=life.platform.clock())
    for _ in range(20):
        life.deaths.turn(life.platform)
        if not InferenceService.objects.exists():
            break
        life.platform.turn()
    assert not InferenceService.objects.exists()
    assert not life.platform.cluster.desired


def scales_up_and_down(life: Life) -> None:
    """A service gets as many replicas as its load needs, and loses them again."""
    life.platform.metrics.in_flight["digits-00001"] = 30
    life.until(lambda: _replicas(life) == 3)
    life.platform.metrics.in_flight["digits-00001"] = 1
    life.until(lambda: _replicas(life) == 1, each=lambda: life.platform.clock.go_on(100))


def _replicas(life: Life) -> int:
    return sum(each.replicas for each in life.platform.cluster.desired["default", "digits"].revisions)


@pytest.mark.django_db
def test_whatever_line_a_worker_is_killed_at_the_next_turn_repairs_it() -> None:
    platform, deaths = Platform(), Deaths()
    platform.live()
    platform.version(2)
    platform.start()
    _live_through((promotes, rolls_back, waits_for_its_cluster, is_deleted), platform, deaths)
    assert len({line for _, line in deaths.done}) > 100, "lives execute many lines"


@pytest.mark.django_db
def test_a_worker_killed_while_it_scales_is_made_up_for() -> None:
    platform, deaths = Platform(), Deaths()
    platform.live(maxReplicas=4, scaleMetric="concurrency", scaleTarget=10)
    _live_through((scales_up_and_down,), platform, deaths)
    assert "replicas.py" in {file for _, (file, _) in deaths.done}


def _live_through(stories: Iterable[Callable[[Life], None]], platform: Platform, deaths: Deaths) -> None:
    """Live each story until there is no line left at which no worker was killed."""
    for story in stories:
        for _ in range(MOST_LIVES):
            before = len(deaths.done)
            _live(story, deepcopy(platform), deaths)
            if len(deaths.done) == before:
                break
        else:
            pytest.fail(f"{story.__name__} has new lines after {MOST_LIVES} lives")


def _live(story: Callable[[Life], None], platform: Platform, deaths: Deaths) -> None:
    """Live one life, check it, and forget it."""
    with suppress(_ForgetError), transaction.atomic():
        life = Life(platform, deaths, Ledger(platform))
        story(life)
        if InferenceService.objects.exists():
            life.ledger.check()
            numbers = list(Event.objects.exclude(service=None).order_by("id").values_list("seq", flat=True))
            assert numbers == list(range(1, len(numbers) + 1)), "every event once, none lost"
        raise _ForgetError


class _ForgetError(Exception):
    """Rolls back what a life has left."""
