import pytest

from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence.blocks import Block, Tally, tally
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.domain.analysis.measurements.latency_limit import SlowerThan
from deployments.domain.analysis.verdict import Verdict

EDGES = (100_000.0, 200_000.0, 300_000.0)
QUESTION = SlowerThan(250_000.0, 1.0, 100)


def answered(*counts: int) -> Counts:
    return Counts(sum(counts), latency=Histogram(EDGES, counts))


def judged(canary: Counts, *, is_clear: bool = False) -> tuple[Verdict, str]:
    found = QUESTION.judge(Window(canary, answered(50, 0, 0, 50), None, None), is_clear=is_clear)
    assert (found.metric, found.limit) == ("slower_than", 1.0)
    return found.verdict, found.message


def test_the_limit_holds_whatever_stable_does_and_the_sentence_names_the_edge() -> None:
    assert judged(answered(100, 50, 49, 1)) == (
        Verdict.SUCCESSFUL,
        "1 of 200 requests of the canary took longer than 300 ms, the histogram's next edge above 250 ms (0.50 %, "
        "limit 1 %), 50 of 100 of stable (50.00 %)",
    )


@pytest.mark.parametrize(
    ("canary", "is_clear", "verdict"),
    [
        pytest.param(answered(99, 0, 0, 0), False, Verdict.RUNNING, id="too few requests"),
        pytest.param(answered(90, 0, 0, 10), False, Verdict.RUNNING, id="too many are slow, and that is not clear yet"),
        pytest.param(answered(50, 0, 0, 50), True, Verdict.FAILED, id="clearly too many are slow"),
        pytest.param(Counts(), False, Verdict.RUNNING, id="no histogram yet"),
    ],
)
def test_the_verdict(canary: Counts, is_clear: bool, verdict: Verdict) -> None:
    assert judged(canary, is_clear=is_clear)[0] is verdict


def test_a_block_counts_what_took_longer_than_the_next_edge() -> None:
    found = tally(answered(1, 2, 3, 4), None, 250_000.0)
    assert (found.answered, found.over) == (10, 4)
    stakes = QUESTION.stakes(Block(found, Tally()))
    assert stakes is not None
    assert stakes.value == pytest.approx(0.4)
    assert QUESTION.stakes(Block(Tally(3, answered=3, over=3), Tally())) is None
