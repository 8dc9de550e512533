"""A tick parses the policy and the service file once: counted by the interpreter, in ticks of real services."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from deployments import mapping
from deployments.domain.policy import parse_policy
from deployments.models import InferenceService
from deployments.reconcile import reconciler
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


def test_a_tick_of_a_rolling_service_parses_its_policy_and_each_revision_once(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    for _ in range(3):
        platform.traffic(40)
        calls, _ = tick(platform)
        assert calls == {PARSES_POLICY: 1, PARSES_REVISION: 2}


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
