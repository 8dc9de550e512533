"""The batching rule and the choice of thread, as tables."""

import pytest

from serving_runtime.config.batching import BatchPolicy, QueuePolicy
from serving_runtime.scheduler.batching import runs_inline, take
from serving_runtime.scheduler.job import Job


def policy(*, limit: int = 8, preferred: tuple[int, ...] = (), delay_us: int = 0) -> BatchPolicy:
    return BatchPolicy(limit, frozenset(preferred), delay_us, 0, 0, {0: QueuePolicy()})


def requests(*waiting: tuple[int, str], waited_us: int = 0) -> list[Job]:
    """Return waiting requests of these rows and shapes; one in the middle came first, as where others are preferred."""
    found = [Job([], rows, shape, lambda _result: None, 1_000_000_000) for rows, shape in waiting]
    found[len(found) // 2].arrived_ns -= waited_us * 1000
    return found


@pytest.mark.parametrize(
    ("rows", "waited_us", "rule", "taken"),
    [
        pytest.param([1], 0, policy(), 1, id="no delay asked: what is there leaves at once"),
        pytest.param([1] * 5, 0, policy(), 5, id="no delay asked: all that is there leaves together"),
        pytest.param([1] * 20, 0, policy(), 8, id="never more than the maximum"),
        pytest.param([3, 3, 3], 0, policy(), 2, id="a request is never parted"),
        pytest.param([8, 1], 0, policy(), 1, id="a full request leaves alone"),
        pytest.param([1, 1], 50, policy(delay_us=100), 0, id="below the delay it waits"),
        pytest.param([1, 1], 100, policy(delay_us=100), 2, id="at the delay it leaves"),
        pytest.param([4, 4], 0, policy(delay_us=100), 2, id="full: no reason to wait"),
        pytest.param([5, 4], 0, policy(delay_us=100), 1, id="the next does not fit: no reason to wait"),
        pytest.param([1] * 4, 0, policy(preferred=(4,), delay_us=100), 4, id="a preferred size leaves at once"),
        pytest.param([1] * 6, 0, policy(preferred=(2, 4), delay_us=100), 4, id="the largest preferred size"),
        pytest.param([1] * 3, 0, policy(preferred=(4,), delay_us=100), 0, id="below the preferred size it waits"),
        pytest.param([1] * 3, 100, policy(preferred=(4,), delay_us=100), 3, id="but not beyond the delay"),
        pytest.param([1] * 3, 0, policy(preferred=(4,)), 3, id="nor without one"),
        pytest.param([3, 2], 0, policy(preferred=(4,), delay_us=100), 0, id="rows, not requests, are preferred"),
        pytest.param([4, 3, 2], 0, policy(preferred=(4,)), 1, id="a preferred size leaves before a full one"),
    ],
)
def test_requests_of_one_shape(rows: list[int], waited_us: int, rule: BatchPolicy, taken: int) -> None:
    waiting = requests(*[(count, "a") for count in rows], waited_us=waited_us)
    wait_us = 0 if taken else rule.max_queue_delay_us - waited_us
    assert take(waiting, 1_000_000_000, rule) == (taken, wait_us)


@pytest.mark.parametrize(
    ("shapes", "rule", "taken"),
    [
        pytest.param("aab", policy(), 2, id="another shape ends the batch"),
        pytest.param("aba", policy(), 1, id="also where the first one comes again"),
        pytest.param("aab", policy(delay_us=100), 2, id="nobody can join: no reason to wait"),
        pytest.param("aa", policy(delay_us=100), 0, id="somebody can"),
        pytest.param("aaab", policy(preferred=(2,), delay_us=100), 2, id="a preferred size is chosen nevertheless"),
    ],
)
def test_requests_of_several_shapes(shapes: str, rule: BatchPolicy, taken: int) -> None:
    waiting = requests(*[(1, shape) for shape in shapes])
    assert take(waiting, 1_000_000_000, rule) == (taken, 0 if taken else 100)


@pytest.mark.parametrize(
    ("now", "run_us", "requests", "inline"),
    [
        pytest.param(True, 20, 1, True, id="a small model stays in the loop"),
        pytest.param(True, 250, 1, False, id="a heavy one leaves it"),
        pytest.param(False, 150, 1, False, id="one on the edge does not come back"),
        pytest.param(False, 90, 1, True, id="one well below does"),
        pytest.param(True, 1500, 32, True, id="many requests may share a longer run"),
        pytest.param(True, 2500, 64, False, id="but none may keep the loop for longer than the limit"),
    ],
)
def test_runs_inline(now: bool, run_us: float, requests: float, inline: bool) -> None:
    assert runs_inline(now_inline=now, run_us=run_us, request_us=run_us / requests) is inline
