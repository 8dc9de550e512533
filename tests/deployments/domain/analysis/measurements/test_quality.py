"""Sentences and verdicts of a gate on quality."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.analysis.criterion import POINTS, Window
from deployments.domain.analysis.evidence import ledger
from deployments.domain.analysis.evidence.label_watch import Span, Watch
from deployments.domain.analysis.evidence.labelled import WHOLE, Habits, Losses, Sides
from deployments.domain.analysis.evidence.totals import Counts
from deployments.domain.analysis.gate import Proof, evaluate
from deployments.domain.analysis.measurements.quality import AnswerQuality
from deployments.domain.analysis.verdict import Measurement, Verdict
from deployments.domain.policy import Gate, Quality

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PERCENT = Habits("percent wrong", 100.0, 60.0, Losses(1000, 20.0, 20.0), 10.0)
QUALITY = Quality("accuracy", 2.0)


def _binary(labels: int, wrong: int) -> Losses:
    return Losses(labels, float(wrong), float(wrong))


def _watch(canary: Losses, stable: Losses, *, habits: Habits = PERCENT, minutes: float = 10.0) -> Watch:
    began = (NOW - timedelta(minutes=minutes)).timestamp()
    return Watch(began, NOW.timestamp(), Span(NOW.timestamp() - 75), habits=habits, sums={WHOLE: Sides(canary, stable)})


def _window(watch: Watch | None, **changed: object) -> Window:
    window = Window(Counts(900), Counts(8000), None, timedelta(minutes=10), labels=watch, at=NOW, share_percent=10.0)
    return replace(window, **changed)  # type: ignore[arg-type]


def _judged(watch: Watch | None, quality: Quality = QUALITY, *, is_clear: bool = False) -> Measurement:
    return AnswerQuality(quality).judge(_window(watch), is_clear=is_clear)


def test_clear_evidence_fails_it_with_the_counts_of_both_sides() -> None:
    found = _judged(_watch(_binary(1116, 356), _binary(9932, 227)), is_clear=True)
    assert (found.verdict, found.metric, found.unit) == (Verdict.FAILED, "quality:accuracy", POINTS)
    assert (found.canary, found.stable, found.limit) == (31.8996, 2.2855, 2.0)
    assert found.message == (
        "356 of 1,116 answers of the canary are wrong (31.9 %) against 227 of 9,932 of stable (2.3 %), 29.6 points "
        "more, limit 2"
    )


def test_other_scorers_say_their_means_in_their_unit() -> None:
    habits = Habits("absolute error", 5.0, 60.0, Losses(1000, 20.0, 1.0), 10.0)
    found = _judged(_watch(Losses(300, 18.0, 2.0), Losses(2000, 40.0, 2.0), habits=habits), Quality("accuracy", 0.5))
    assert (found.verdict, found.canary, found.stable) == (Verdict.SUCCESSFUL, 0.3, 0.1)
    assert (found.unit, found.limit) == ("absolute error", 0.6)
    assert found.message == (
        "the absolute error of the canary is 0.3 over 300 answers against 0.1 over 2,000 of stable, 0.2 more, limit 0.5"
    )


@pytest.mark.parametrize(
    ("watch", "outlook"),
    [
        pytest.param(
            _watch(_binary(105, 2), _binary(900, 18)), "95 labels more, at today's rate until 12:07 (UTC)",
            id="by the rate of the step: 105 in 525 s",
        ),
        pytest.param(
            _watch(Losses(), Losses(), habits=replace(PERCENT, per_second=0.01, horizon_s=3600.0), minutes=0.5),
            "200 labels more, at today's rate until 2026-01-03 20:33 (UTC)",
            id="by stable's rate before, once the first can be due",
        ),
        pytest.param(
            _watch(Losses(), Losses(), habits=replace(PERCENT, per_second=0.05), minutes=0.5),
            "200 labels more, at today's rate until 23:07 (UTC)", id="today",
        ),
        pytest.param(
            _watch(Losses(), Losses(), habits=replace(PERCENT, per_second=0.04), minutes=0.5),
            "200 labels more, at today's rate until 01:54 tomorrow (UTC)", id="tomorrow",
        ),
        pytest.param(
            _watch(Losses(), Losses(), habits=replace(PERCENT, per_second=None), minutes=0.5),
            "200 labels more; they count 1m after their request", id="no rate",
        ),
        pytest.param(
            _watch(Losses(), Losses()),
            "none came for requests to the canary in this step, although labels take 1m; send them (fairlead feedback "
            "send), and see where they stay (fairlead feedback show)",
            id="none for long",
        ),
        pytest.param(
            replace(_watch(Losses(), Losses()), seen_canary=4),
            "none came for requests to stable in this step, although labels take 1m; send them (fairlead feedback "
            "send), and see where they stay (fairlead feedback show)",
            id="none of stable for long",
        ),
        pytest.param(
            _watch(_binary(300, 12), _binary(2000, 20)), "that is not clear yet, more labels are needed", id="above",
        ),
    ],
)  # fmt: skip
def test_a_step_that_waits_says_for_how_many_labels_and_until_when(watch: Watch, outlook: str) -> None:
    found = _judged(watch)
    assert found.verdict is Verdict.RUNNING
    assert found.message.partition("; ")[2] == outlook


def test_what_is_missing_is_the_whole_sentence() -> None:
    watch = replace(_watch(Losses(), Losses()), habits=None, problem="there is no scorer accuracy; add it")
    assert (_judged(watch).verdict, _judged(watch).message) == (Verdict.RUNNING, "there is no scorer accuracy; add it")
    assert _judged(None).message == "labels have not been read yet"


def test_at_weight_100_there_is_nothing_to_compare() -> None:
    found = AnswerQuality(QUALITY).judge(_window(_watch(Losses(), Losses()), stable=Counts()), is_clear=False)
    assert found.verdict is Verdict.SUCCESSFUL
    assert "stable had no requests in this step" in found.message


@pytest.mark.parametrize(
    ("canary", "waited", "verdict"),
    [
        pytest.param(Counts(900), 10, Verdict.RUNNING, id="only quality is undecided: its own deadline counts"),
        pytest.param(Counts(900), 121, Verdict.INCONCLUSIVE, id="which passed"),
        pytest.param(Counts(90), 10, Verdict.INCONCLUSIVE, id="others are undecided: that of the gate"),
    ],
)
def test_labels_are_waited_for_longer_than_the_rest(canary: Counts, waited: int, verdict: Verdict) -> None:
    gate = Gate(max_slow_percent=None, quality=replace(QUALITY, deadline=timedelta(hours=2)))
    window = _window(_watch(_binary(105, 2), _binary(900, 18)), canary=canary, waited=timedelta(minutes=waited))
    assert evaluate(gate, window, Proof(ledger.begin(0.0), 7.0)).verdict is verdict
