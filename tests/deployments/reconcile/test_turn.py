"""What a turn of the reconciler is made of: its participants, and the policy and service file that it parses once."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from deployments import mapping
from deployments.domain.policy import parse_policy
from deployments.models import InferenceService
from deployments.reconcile import participants, reconciler
from deployments.reconcile.memory import Memory
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from tests.deployments._support.platform import Platform

PARSES_POLICY, PARSES_REVISION = parse_policy.__code__, mapping.revision_state.__code__


@contextmanager
def counted(*codes: CodeType) -> Iterator[Counter[CodeType]]:
    """Count the calls of functions in a block, by their code."""
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            calls[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def tick(platform: Platform) -> tuple[Counter[CodeType], int]:
    """Return how often a tick parses each, and its number of queries."""
    platform.clock.go_on(2)
    platform.cluster.settle()
    service_id = InferenceService.objects.values_list("pk", flat=True).get()
    with counted(PARSES_POLICY, PARSES_REVISION) as calls, CaptureQueriesContext(connection) as queries:
        assert reconciler.tick(service_id, platform.outside) is reconciler.Outcome.DONE
    return calls, len(queries)


def test_a_tick_of_a_rolling_service_parses_its_policy_and_each_revision_once_where_it_reads_them(
    platform: Platform,
) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    tick(platform)
    for _ in range(3):
        platform.traffic(40)
        calls, remembered = tick(platform)
        assert calls == {}
        platform.traffic(40)
        platform.memory = Memory(time.monotonic)
        calls, read = tick(platform)
        assert calls == {PARSES_POLICY: 1, PARSES_REVISION: 2}
        assert remembered < read


def test_a_rolling_service_that_follows_its_load_is_parsed_once_too(platform: Platform) -> None:
    platform.live(maxReplicas=4, scaleMetric="concurrency", scaleTarget=10)
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    platform.traffic(40)
    calls, _ = tick(platform)
    assert calls == {PARSES_POLICY: 1, PARSES_REVISION: 2}


def test_a_settled_service_follows_no_policy_and_its_tick_parses_none(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    platform.until(InferenceService.objects.filter(settled=F("changes")).exists)
    tick(platform)  # with a sample of the traffic
    calls, queries = tick(platform)
    assert calls == {PARSES_REVISION: 1}
    assert queries <= 10, "a tick's own eight, and a savepoint's two"


class Noting(Participant[int]):
    """Notes when it is called, and has more to do for two turns."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bool]] = []

    def collect(self, turn: Turn) -> int:
        self.calls.append(("collect", connection.in_atomic_block))
        return len(turn.read.revisions)

    def record(self, change: Change, found: int) -> None:
        assert found == len(change.revisions)
        self.calls.append(("record", connection.in_atomic_block))

    def unsettled(self, change: Change) -> bool:
        assert change.service.phase == "Ready"
        return len(self.calls) <= 4


NOTING = Noting()


@pytest.fixture
def noting() -> Iterator[Noting]:
    path = f"{__name__}.NOTING"
    participants.register(path)
    participants.register(path)
    reconciler._participants.cache_clear()
    yield NOTING
    participants.REGISTERED.remove(path)
    reconciler._participants.cache_clear()


def test_a_registered_participant_collects_before_the_transaction_and_records_inside(
    transactional_db: None, request: pytest.FixtureRequest
) -> None:
    platform = Platform()
    platform.live()
    settled = InferenceService.objects.filter(settled=F("changes"))
    platform.until(settled.exists)
    noting: Noting = request.getfixturevalue("noting")
    for turns in (1, 2, 3):
        tick(platform)
        assert noting.calls == [("collect", False), ("record", True)] * turns
        assert settled.exists() is (turns == 3)


def test_recordings_and_kept_answers_are_participants_by_their_own_registration() -> None:
    assert participants.REGISTERED == [
        "feedback.reconcile.answers.ANSWERS",
        "feedback.reconcile.drift.DRIFT",
        "recordings.reconcile.payloads.RECORDINGS",
    ]
