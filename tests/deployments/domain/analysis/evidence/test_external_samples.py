from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence import ledger as ledgers
from deployments.domain.analysis.evidence.eprocess import LIMIT_BETTORS, bet, fresh, log_capital, threshold
from deployments.domain.analysis.evidence.external_samples import Looks, begin, look, miss
from deployments.domain.analysis.evidence.ledger import Ledger
from deployments.domain.analysis.evidence.totals import Counts
from deployments.domain.analysis.measurements.metrics import OfPrometheus, stakes_of
from deployments.domain.analysis.verdict import Verdict
from deployments.domain.policy import Metric

LIMIT = Metric("queue", "q", maximum=5.0)
RANGE = Metric("queue", "q", minimum=1.0, maximum=5.0)
MORE = Metric("queue", "q", min_looks=6, allowed_percent=50.0, max_increase_percent=20.0)
LESS = Metric("score", "q", min_looks=6, allowed_percent=50.0, max_decrease_percent=20.0)
ALPHA = 0.01


def taken(metric: Metric, *numbers: tuple[float | None, float | None]) -> tuple[Ledger, Looks]:
    """Return what looks came to, one per interval, and their evidence."""
    ledger = ledgers.begin(0.0)
    looks = begin([metric], 0.0)
    for index, (canary, stable) in enumerate(numbers, start=1):
        ledger = replace(ledger, looks=looks)
        after = look(metric, looks[metric.name], canary=canary, stable=stable, problem="", now=10.0 * index)
        looks = {metric.name: after}
        ledger = ledgers.take_looks(ledger, [metric], looks)
    return ledger, looks[metric.name]


def judged(metric: Metric, ledger: Ledger, looks: Looks) -> tuple[Verdict, str]:
    is_clear = ledger.log_capital(metric.name) >= threshold(ALPHA, 1)
    window = Window(Counts(), Counts(), None, None, looks={metric.name: looks})
    found = OfPrometheus(metric).judge(window, is_clear=is_clear)
    assert (found.metric, found.canary, found.stable) == (metric.name, looks.canary, looks.stable)
    return found.verdict, found.message


@pytest.mark.parametrize(
    ("metric", "numbers", "against"),
    [
        pytest.param(LIMIT, [(5.0, None)], 0, id="at the limit is within it"),
        pytest.param(LIMIT, [(5.1, None)], 1, id="above it"),
        pytest.param(RANGE, [(0.9, None), (3.0, None), (7.0, None)], 2, id="below and above"),
        pytest.param(MORE, [(12.0, 10.0), (12.1, 10.0)], 1, id="more than 20 % above stable's"),
        pytest.param(MORE, [(-7.9, -10.0), (-8.1, -10.0)], 1, id="20 % above -10 is -8"),
        pytest.param(LESS, [(8.0, 10.0), (7.9, 10.0), (20.0, 10.0)], 1, id="more than 20 % below stable's"),
        pytest.param(MORE, [(0.0, 0.0)], 0, id="two zeros are equal"),
    ],
)
def test_which_looks_go_against_the_canary(
    metric: Metric, numbers: list[tuple[float, float | None]], against: int
) -> None:
    _, looks = taken(metric, *numbers)
    assert (looks.taken, looks.against) == (len(numbers), against)


def test_a_look_without_the_numbers_it_needs_counts_for_nothing() -> None:
    ledger, looks = taken(MORE, (None, 10.0), (10.0, None), (None, None))
    assert (looks.taken, looks.against) == (0, 0)
    assert ledger.wealth == {}
    assert judged(MORE, ledger, looks) == (
        Verdict.RUNNING,
        "queue has no number for the canary; a verdict needs 6 looks, one is taken every 10s",
    )


def test_a_good_canary_passes_after_enough_looks() -> None:
    numbers: list[tuple[float | None, float | None]] = [(3.0, None)] * 3
    assert judged(LIMIT, *taken(LIMIT, *numbers[:2]))[0] is Verdict.RUNNING
    assert judged(LIMIT, *taken(LIMIT, *numbers)) == (
        Verdict.SUCCESSFUL,
        "queue of the canary was above 5 in 0 of 3 looks, of which 10 % may be; the last was 3",
    )


def test_one_bad_look_of_few_holds_and_does_not_fail() -> None:
    found = judged(LIMIT, *taken(LIMIT, (9.0, None), (3.0, None), (3.0, None)))
    assert found == (
        Verdict.RUNNING,
        "queue of the canary was above 5 in 1 of 3 looks, of which 10 % may be; the last was 3; that is not clear yet, "
        "more looks are needed",
    )


@pytest.mark.parametrize(
    ("metric", "bad", "at_most"),
    [
        pytest.param(LIMIT, (9.0, None), 8, id="out of bounds"),
        pytest.param(MORE, (30.0, 10.0), 30, id="worse than stable"),
    ],
)
def test_looks_that_all_go_against_the_canary_fail_it(
    metric: Metric, bad: tuple[float, float | None], at_most: int
) -> None:
    verdicts = [judged(metric, *taken(metric, *[bad] * count))[0] for count in range(1, at_most + 1)]
    failed = verdicts.index(Verdict.FAILED)
    assert failed >= 2, "two looks prove nothing"
    assert set(verdicts[:failed]) == {Verdict.RUNNING}


@pytest.mark.parametrize(
    ("metric", "share"),
    [
        pytest.param(LIMIT, 0.1, id="a tenth of the looks beyond the limit"),
        pytest.param(MORE, 0.5, id="either is the worse one as often as not"),
    ],
)
def test_chance_alone_fails_hardly_any_canary(metric: Metric, share: float) -> None:
    """Of 2000 canaries that are as bad as allowed, over 200 looks each, at most alpha of them may fail: 20."""
    against = np.random.default_rng(7).random((200, 2000)) < share
    wealth, failed = fresh(LIMIT_BETTORS, (2000,)), np.zeros(2000, dtype=bool)
    before = Looks(0.0)
    stakes = [stakes_of(metric, before, replace(before, taken=1, against=value)) for value in (0, 1)]
    for looks in against:
        factors = np.array([each.factors for each in stakes if each is not None])[looks.astype(int)]
        wealth = bet(wealth, factors, looks.astype(float))
        failed |= log_capital(wealth) >= threshold(ALPHA, 1)
    assert failed.sum() <= 20


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"outage": "Prometheus is away"}, "Prometheus is away; nothing is decided until it", id="outage"),
        pytest.param({"problem": "the query gives 2 series"}, "the query gives 2 series", id="a bad query"),
    ],
)
def test_what_cannot_be_asked_is_neither_passed_nor_failed(changed: dict[str, Any], said: str) -> None:
    for numbers in ([(3.0, None)] * 5, [(9.0, None)] * 5):
        ledger, looks = taken(LIMIT, *numbers)
        verdict, message = judged(LIMIT, ledger, replace(looks, **changed))
        assert verdict is Verdict.RUNNING
        assert said in message


def test_an_outage_is_retried_soon_and_a_look_that_was_taken_ends_it() -> None:
    metric = replace(LIMIT, interval=timedelta(minutes=2))
    before = begin([metric], 1000.0)["queue"]
    assert before.next_at == 1120
    missed = miss(metric, before, outage="away", now=1120.0)
    assert (missed.next_at, missed.outage, missed.taken) == (1130, "away", 0)
    again = look(metric, missed, canary=1.0, stable=None, problem="", now=1130.0)
    assert (again.next_at, again.outage, again.taken) == (1250, "", 1)
