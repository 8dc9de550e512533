"""Means with intervals, quantiles of delays, and slices whose multiplicity is paid for."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from feedback.domain.quality import MOST_VALUES, NOTHING, Scored, Sums, quantiles, series_of, slices_of, total_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def of(revision: str, loss: float, minute: int = 0, **parameters: str) -> Scored:
    return Scored(revision, NOON + timedelta(minutes=minute), loss, 10.0, parameters)


def test_scores_are_summed_by_revision_and_period() -> None:
    scored = [of("a", 1.0, 4), of("a", 0.0, 1), of("a", 0.5, 31), of("b", 1.0, 59)]
    found = series_of(scored, timedelta(minutes=5))
    assert [(at.minute, sums.scores, sums.mean, sums.squares) for at, sums in found["a"]] == [
        (0, 2, 0.5, 1.0),
        (30, 1, 0.5, 0.25),
    ]
    assert [at.minute for at, _ in found["b"]] == [55]
    assert series_of([], timedelta(minutes=5)) == {}


def test_sums_give_the_mean_and_the_mean_delay() -> None:
    scored = [of("a", 1.0), of("a", 0.0), of("a", 0.0, 1), of("a", 1.0, 2)]
    found = total_of(series_of(scored, timedelta(minutes=1))["a"])
    assert (found.scores, found.mean, found.mean_delay_s) == (4, 0.5, 10.0)
    assert (NOTHING.mean, NOTHING.mean_delay_s, NOTHING.interval()) == (None, None, None)


@pytest.mark.parametrize(
    ("sums", "low", "high"),
    [
        pytest.param(Sums(10, 0.0, 0.0), 0.0, 0.2775, id="all right: Wilson's interval does not end at 0"),
        pytest.param(Sums(100, 50.0, 50.0), 0.4038, 0.5962, id="half wrong"),
        pytest.param(Sums(100, 20.0, 5.0), 0.1803, 0.2197, id="losses between: the normal approximation"),
        pytest.param(Sums(4, 0.1, 0.006), 0.0, 0.0585, id="cut at 0"),
    ],
)
def test_the_interval_of_a_mean(sums: Sums, low: float, high: float) -> None:
    found = sums.interval()
    assert found == pytest.approx((low, high), abs=2e-4)


def test_nineteen_of_twenty_intervals_hold_the_truth() -> None:
    seeded = random.Random(7)
    held = 0
    for _ in range(2000):
        wrong = sum(seeded.random() < 0.1 for _ in range(200))
        low, high = Sums(200, wrong, wrong).interval() or (0, 0)
        held += low <= 0.1 <= high
    assert 0.93 < held / 2000 < 0.97


def test_quantiles_are_delays_that_there_were() -> None:
    assert quantiles([float(each) for each in range(100)]) == (50.0, 90.0, 99.0)
    assert quantiles([3.0]) == (3.0, 3.0, 3.0)
    assert quantiles([]) == ()


def test_a_slice_in_which_the_canary_is_worse_is_found_and_others_are_not() -> None:
    scored = [
        of(revision, float(revision == "canary" and region == "south" and number % 2), region=region)
        for number in range(80)
        for revision in ("stable", "canary")
        for region in ("north", "south")
    ]
    found = slices_of(scored, baseline="stable", candidate="canary")
    assert [(each.parameter, each.value, each.scores, each.is_worse) for each in found] == [
        ("region", "north", 160, False),
        ("region", "south", 160, True),
    ]


def test_few_scores_of_one_side_decide_nothing() -> None:
    scored = [of("stable", 0.0, region="south")] * 100 + [of("canary", 1.0, region="south")] * 29
    assert not slices_of(scored, baseline="stable", candidate="canary")[0].is_worse
    assert not slices_of(scored, baseline="stable", candidate="")[0].is_worse


def test_equal_revisions_show_a_worse_slice_in_at_most_one_look_of_twenty() -> None:
    seeded = random.Random(11)
    alarms = 0
    for _ in range(200):
        scored = [
            of(revision, float(seeded.random() < 0.1), region=str(region))
            for revision in ("stable", "canary")
            for region in range(8)
            for _ in range(60)
        ]
        alarms += any(each.is_worse for each in slices_of(scored, baseline="stable", candidate="canary"))
    assert alarms / 200 <= 0.08


def test_only_the_most_frequent_values_of_a_parameter_are_slices() -> None:
    scored = [of("stable", 0.0, user=f"u{number}") for number in range(100)]
    scored += [of("stable", 0.0, user="u99")] * 3
    found = slices_of(scored, baseline="stable", candidate="")
    assert len(found) == MOST_VALUES
    assert found[0].value == "u99"
