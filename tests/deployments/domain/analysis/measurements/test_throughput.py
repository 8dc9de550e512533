from dataclasses import replace

import pytest

from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence import ledger as ledgers
from deployments.domain.analysis.evidence.blocks import Block, Tally, tally
from deployments.domain.analysis.evidence.eprocess import threshold
from deployments.domain.analysis.evidence.totals import Counts
from deployments.domain.analysis.measurements.throughput import Throughput
from deployments.domain.analysis.verdict import Verdict
from integrations.clusters.base import BatchTime

QUESTION = Throughput(80.0, 100)
STABLE = (BatchTime(1, 100, 10_000), BatchTime(8, 800, 16_000))


def ran(duration_us: int, requests: int = 100) -> Counts:
    """One row per execution, 100 of them."""
    return Counts(requests, batches=(BatchTime(1, 100, duration_us),))


def judged(canary: Counts, stable: Counts, *, is_clear: bool = False) -> tuple[Verdict, float | None, str]:
    found = QUESTION.judge(Window(canary, stable, None, None), is_clear=is_clear)
    assert (found.metric, found.unit, found.limit) == ("throughput", "percent", 80.0)
    return found.verdict, found.canary, found.message


@pytest.mark.parametrize(
    ("canary", "is_clear", "verdict", "percent"),
    [
        pytest.param(ran(10_000), False, Verdict.SUCCESSFUL, 100.0, id="as fast in batches of that size"),
        pytest.param(ran(12_500), False, Verdict.SUCCESSFUL, 80.0, id="just as fast as it must be"),
        pytest.param(ran(20_000), False, Verdict.RUNNING, 50.0, id="too slow, and that is not clear yet"),
        pytest.param(ran(20_000), True, Verdict.FAILED, 50.0, id="clearly too slow"),
        pytest.param(ran(10_000, requests=99), False, Verdict.RUNNING, 100.0, id="too few requests to pass"),
    ],
)
def test_throughput_is_judged_beside_stables(canary: Counts, is_clear: bool, verdict: Verdict, percent: float) -> None:
    found = judged(canary, Counts(900, batches=STABLE), is_clear=is_clear)
    assert found[:2] == (verdict, percent)


def test_the_sentence_has_both_rates_and_what_was_compared() -> None:
    assert judged(ran(20_000), Counts(900, batches=STABLE))[2] == (
        "a replica of the canary inferred 5,000 rows per second of execution, one of stable 34,615; in batches of like "
        "size the canary did 50.0 % of what stable does, at least 80 % are required; that is not clear yet, more "
        "requests are needed"
    )


def test_without_stable_traffic_there_is_nothing_to_compare() -> None:
    assert judged(ran(20_000), Counts())[0] is Verdict.SUCCESSFUL
    assert judged(Counts(), Counts(900, batches=STABLE))[0] is Verdict.RUNNING


def test_a_canary_that_is_too_slow_in_every_block_is_failed_and_one_that_is_not_never_is() -> None:
    for duration_us, is_failed in ((20_000, True), (10_500, False)):
        ledger, canary, stable = ledgers.begin(0.0), Counts(), Counts()
        for tick in range(1, 41):
            canary = replace(
                ran(tick * duration_us, requests=20 * tick), batches=(BatchTime(1, 20 * tick, duration_us * tick // 5),)
            )
            stable = Counts(100 * tick, batches=(BatchTime(1, 100 * tick, 10_000 * tick),))
            ledger = ledgers.carry_on(ledger, [QUESTION], tally(canary, None), tally(stable, None), 2.0 * tick)
        assert (ledger.log_capital("throughput") >= threshold(0.01, 4)) is is_failed


def test_a_block_without_like_batches_says_nothing() -> None:
    block = Block(Tally(10, batches=(BatchTime(1, 10, 100),)), Tally(90, batches=(BatchTime(8, 90, 100),)))
    assert QUESTION.stakes(block) is None
