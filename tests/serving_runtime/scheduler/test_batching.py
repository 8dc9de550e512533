"""The batching rule and the choice of thread, as tables."""

import pytest

from serving_runtime.config.batching import BatchPolicy, QueuePolicy
from serving_runtime.scheduler.batching import runs_inline, take


def policy(*, limit: int = 8, preferred: tuple[int, ...] = (), delay_us: int = 0) -> BatchPolicy:
    return BatchPolicy(limit, frozenset(preferred), delay_us, 0, 0, {0: QueuePolicy()})


@pytest.mark.parametrize(
    ("rows", "waited_us", "rule", "complete", "taken"),
    [
        pytest.param([1], 0, policy(), False, 1, id="no delay asked: what is there leaves at once"),
        pytest.param([1] * 5, 0, policy(), False, 5, id="no delay asked: all that is there leaves together"),
        pytest.param([1] * 20, 0, policy(), False, 8, id="never more than the maximum"),
        pytest.param([3, 3, 3], 0, policy(), False, 2, id="a request is never parted"),
        pytest.param([8, 1], 0, policy(), False, 1, id="a full request leaves alone"),
        pytest.param([1, 1], 50, policy(delay_us=100), False, 0, id="below the delay it waits"),
        pytest.param([1, 1], 100, policy(delay_us=100), False, 2, id="at the delay it leaves"),
        pytest.param([4, 4], 0, policy(delay_us=100), False, 2, id="full: no reason to wait"),
        pytest.param([5, 4], 0, policy(delay_us=100), False, 1, id="the next does not fit: no reason to wait"),
        pytest.param([1, 1], 0, policy(delay_us=100), True, 2, id="nobody can join: no reason to wait"),
        pytest.param([1] * 4, 0, policy(preferred=(4,), delay_us=100), False, 4, id="a preferred size leaves at once"),
        pytest.param([1] * 6, 0, policy(preferred=(2, 4), delay_us=100), False, 4, id="the largest preferred size"),
        pytest.param(
            [1] * 3, 0, policy(preferred=(4,), delay_us=100), False, 0, id="below the preferred size it waits"
        ),
        pytest.param([1] * 3, 100, policy(preferred=(4,), delay_us=100), False, 3, id="but not beyond the delay"),
        pytest.param([3, 2], 0, policy(preferred=(4,), delay_us=100), False, 0, id="rows, not requests, are preferred"),
    ],
)
def test_take(rows: list[int], waited_us: int, rule: BatchPolicy, complete: bool, taken: int) -> None:
    assert take(rows, waited_us, rule, complete=complete) == taken


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
