"""A worker killed anywhere in the reconciler that a service's life comes by: the next tick repairs it.

Each scenario is lived again and again. In every turn some workers are killed first, each in a situation and after an
effect (on the database, on the cluster) after which none was killed yet; what comes between two effects is lost with
the process, so it is all the same at which line of it that one dies. A long test proves that: it kills one at every
line, too. Another takes over once the dead one's lease is out. It ends when no such place is left.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.domain.approver import Approver
from accounts.services import user_get_or_create
from common.errors import Unavailable
from deployments.domain.autoscaling import rollout_capacity
from deployments.domain.phases import Phase
from deployments.models import Approval, InferenceService, Revision, Rollout, WebhookQuestion
from deployments.reconcile import lease, reconciler, restarts, service_change
from deployments.reconcile.memory import Memory
from deployments.reconcile.participants import evidence, gates, replicas
from deployments.reconcile.participants.gates import question_begin, question_end
from deployments.services import rollout_approve, rollout_promote, service_delete
from events.models import Event
from events.services import delivery
from tests import scenes
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.killer import Line, killed_at, with_lines
from tests.deployments._support.ledger import Ledger
from tests.deployments._support.platform import Platform

PLATFORM = Path(str(reconciler.__file__)).parents[2]
ROOMS = ("deployments", "clusters", "events", "gpus", "jobs", "recordings")
ELSEWHERE = {"api", "management", "migrations", "services", "templatetags"}
"""What people and programs call; a turn of the loop calls everything else, but for what it does not execute."""
FILES = {
    str(path)
    for room in ROOMS
    for path in (PLATFORM / room).rglob("*.py")
    if not ELSEWHERE & set(path.relative_to(PLATFORM / room).parts)
} | {str(delivery.__file__)}
AT_LEAST = {str(module.__file__) for module in (delivery, evidence, lease, reconciler, service_change, restarts)}
AT_LEAST_DEATHS = 200
WITHS = with_lines(FILES)
MOST_LIVES = 500
MOST_IN_A_ROW = 60
Situation = tuple[object, ...]
Effect = tuple[int, ...]
"""How much was sent to the database, and what the cluster was told, since the turn began."""


@dataclass
class Deaths:
    """Where workers were killed: at which lines, and after which effect in which situation.

    Attributes:
        at_each_line: one is killed at every line, whatever effects there were.
    """

    files: set[str] = field(default_factory=lambda: FILES)
    at_each_line: bool = True
    lines: set[Line] = field(default_factory=set)
    effects: dict[Situation, set[Effect]] = field(default_factory=lambda: defaultdict(set))

    @property
    def count(self) -> int:
        return len(self.lines) + sum(map(len, self.effects.values()))

    def turn(self, platform: Platform) -> None:
        """Tick with workers one after the other, each killed where none was before."""
        for _ in range(MOST_IN_A_ROW):
            if not InferenceService.objects.exists():
                return
            is_new = partial(self._is_new, self.effects[_situation()], platform.cluster, len(platform.cluster.applied))
            with killed_at(self.files, is_new):
                with suppress(Unavailable):
                    platform.turn(seconds=0)
                return
            # Its lease runs out. Were the clock to go on for it, most of the rollout would count as unseen.
            InferenceService.objects.update(lease_expires_at=platform.clock())
            platform.memory = Memory(time.monotonic)

    def _is_new(self, effects: set[Effect], cluster: FakeCluster, applied: int, line: Line, writes: int) -> bool:
        effect = (writes, len(cluster.applied) - applied, len(cluster.deleted))
        is_new_line = self.at_each_line and line not in self.lines
        if not is_new_line and (effect in effects or line in WITHS):
            return False
        self.lines.add(line)
        effects.add(effect)
        return True


def _situation() -> Situation:
    """Return what decides which way a turn goes."""
    service = InferenceService.objects.first()
    rollout = Rollout.objects.order_by("-id").first()
    running = Revision.objects.filter(stopped_at=None).order_by("number")
    roles = tuple(running.values_list("role", "replicas"))
    if rollout is None:
        return (service and service.phase, roles)
    step = (rollout.phase, rollout.step_index, rollout.confirmed_at is None, rollout.policy_name)
    return (service and service.phase, *step, roles)


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


Story = Callable[[Life], None]


def promotes(life: Life) -> None:
    """A canary rollout that ends Healthy; the old revision is stopped."""
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


def switches(life: Life) -> None:
    """A blue/green rollout: a preview that passes, one switch, and the old revision is stopped."""
    platform = life.platform
    platform.policy(name="switch", strategy="blueGreen", steps=[{"hold": "4s", "analysis": {"minRequests": 50}}])
    platform.start("2", "switch")
    life.until(lambda: platform.rollout().reason_code == "NoTraffic")
    platform.metrics.serve("digits-00002", 60)
    life.until(life.phase_is(Phase.HEALTHY))
    life.until(lambda: Revision.objects.get(number=1).stopped_at is not None)
    assert {entry[1] for entry in life.ledger.applied} == {(("digits-00001", 100),), (("digits-00002", 100),)}


def shadows(life: Life) -> None:
    """A shadow rollout: copies while it is tried, nothing to clients before somebody promotes it."""
    platform = life.platform
    steps = [{"weight": 20, "hold": "4s", "analysis": {"minRequests": 100}}]
    platform.policy(name="shadow", strategy="shadow", steps=steps)
    platform.start("2", "shadow")
    life.until(life.phase_is(Phase.PAUSED), each=platform.traffic)
    assert {entry[1] for entry in life.ledger.applied} == {(("digits-00001", 100),)}
    rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    life.until(life.phase_is(Phase.HEALTHY))
    assert platform.cluster.weights()["digits-00002"] == 100


def asks(life: Life) -> None:
    """A step that asks a system outside and then somebody: each is asked once, and what they said lets it go on."""
    platform = life.platform
    scenes.webhook("ConfirmRollout", url="https://ci.example/hook")
    webhooks = [{"name": "tests", "url": "https://ci.example/hook"}]
    platform.policy(name="asking", steps=[{"weight": 20, "webhooks": webhooks, "pause": {"approvals": 1}}])
    platform.start("2", "asking")
    life.until(WebhookQuestion.objects.exists)
    question = question_begin(question_id=WebhookQuestion.objects.get().pk, now=platform.clock())
    assert question is not None
    question_end(of=question, status=200, answer='{"verdict": "go"}', now=platform.clock())
    life.until(life.phase_is(Phase.PAUSED))
    user_get_or_create(username="bob", now=timezone.now())
    bob = Approver("bob")
    rollout_approve(rollout_id=platform.rollout().pk, approver=bob, comment="", actor="bob", now=platform.clock())
    life.until(life.phase_is(Phase.HEALTHY))
    assert WebhookQuestion.objects.count() == 1
    assert Approval.objects.get().used_at is not None


def canary(story: Story) -> Story:
    """Return the story as one that begins with a canary rollout."""

    def told(life: Life) -> None:
        life.platform.start()
        story(life)

    return told


def scales_up_and_down(life: Life) -> None:
    """A service gets as many replicas as its load needs, and loses them again."""
    life.platform.metrics.in_flight["digits-00001"] = 30
    life.until(lambda: _replicas(life) == 3)
    life.platform.metrics.in_flight["digits-00001"] = 1
    life.until(lambda: _replicas(life) == 1, each=lambda: life.platform.clock.go_on(100))


def _replicas(life: Life) -> int:
    return sum(each.replicas for each in life.platform.cluster.desired["default", "digits"].revisions)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "at_each_line", [False, pytest.param(True, marks=pytest.mark.long)], ids=["after every effect", "at every line"]
)
def test_wherever_a_worker_is_killed_the_next_turn_repairs_it(*, at_each_line: bool) -> None:
    platform, deaths = Platform(), Deaths(at_each_line=at_each_line)
    platform.live()
    platform.version(2)
    by_canary = map(canary, (promotes, rolls_back, waits_for_its_cluster, is_deleted))
    _live_through((*by_canary, switches, shadows), platform, deaths)
    assert not at_each_line or {file for file, _ in deaths.lines} >= AT_LEAST
    assert deaths.count > AT_LEAST_DEATHS


@pytest.mark.django_db
def test_a_worker_killed_while_it_scales_is_made_up_for() -> None:
    platform = Platform()
    deaths = Deaths({str(module.__file__) for module in (rollout_capacity, reconciler, service_change, replicas)})
    platform.live(maxReplicas=4, scaleMetric="concurrency", scaleTarget=10)
    _live_through((scales_up_and_down,), platform, deaths)
    assert {file for file, _ in deaths.lines} == deaths.files


@pytest.mark.django_db
def test_a_worker_killed_while_a_step_asks_others_is_made_up_for() -> None:
    platform, deaths = Platform(), Deaths({str(gates.__file__)})
    platform.live()
    platform.version(2)
    _live_through((asks,), platform, deaths)
    assert {file for file, _ in deaths.lines} == deaths.files


def _live_through(stories: Iterable[Story], platform: Platform, deaths: Deaths) -> None:
    """Live each story until there is no place left at which no worker was killed."""
    for story in stories:
        for _ in range(MOST_LIVES):
            before = deaths.count
            _live(story, deepcopy(platform, {id(platform.memory): Memory(time.monotonic)}), deaths)
            if deaths.count == before:
                break
        else:
            pytest.fail(f"{story.__name__} has new lines after {MOST_LIVES} lives")


def _live(story: Story, platform: Platform, deaths: Deaths) -> None:
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
