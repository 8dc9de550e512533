from typing import Any

import pytest

from deployments.domain.comparison.answers import Answer, compare
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.report import Report, add
from deployments.domain.comparison.summary import Summary, summary_of
from deployments.web.rollouts.charts import MOST_DECADES, output_charts, scale_of, tensors_of
from tests.deployments._support.pairs import report_of, tensor


def kept(shape: list[int], values: list[float]) -> dict[str, Any]:
    return {"datatype": "FP32", "shape": shape, "values": values}


def summary(*off: float, limit: float = 99.0) -> Summary:
    return summary_of(report_of(*off), Terms(min_agreement_percent=limit))


def test_bars_tell_rows_by_their_largest_difference_from_none_to_the_largest() -> None:
    [chart] = output_charts(summary(0.0, 0.0, 2.0, 0.03))
    absolute, relative = chart.histograms
    assert [(bar.label, bar.rows) for bar in absolute.bars] == [("0", 2), ("10⁻²", 1), ("10⁻¹", 0), ("10⁰", 1)]
    assert [bar.height for bar in absolute.bars] == [40, 20, 0, 20]
    assert absolute.words == "Absolute difference, rows: no difference: 2, 10⁻² and more: 1, 10⁰ and more: 1"
    assert relative.title == "Relative difference"


def test_what_is_far_below_the_largest_is_one_bar() -> None:
    [chart] = output_charts(summary(*[10.0**-power for power in range(7)], 1e6, 1e9))
    bars = chart.histograms[0].bars
    assert len(bars) == MOST_DECADES + 1
    assert bars[1].label.startswith("≤")
    assert sum(bar.rows for bar in bars) == 9


def test_differences_without_a_size_have_a_bar_of_their_own() -> None:
    [chart] = output_charts(summary(float("nan"), 0.0))
    assert [(bar.label, bar.rows) for bar in chart.histograms[0].bars] == [("0", 1), ("NaN", 1)]


def test_outputs_that_are_compared_for_equality_have_no_bars() -> None:
    label = Answer({"label": tensor([[1.0]])})
    report = add(Report(), compare({}, label, Answer({}), Terms()))
    [chart] = output_charts(summary_of(report, Terms()))
    assert chart.histograms == ()


def test_the_scale_is_as_short_as_what_it_shows() -> None:
    agreeing = scale_of(summary(*[0.0] * 3000))
    assert agreeing is not None
    assert (agreeing.begin_percent, agreeing.value, agreeing.limit) == (99, 100, 0)
    differing = scale_of(summary(*[2.0] * 30))
    assert differing is not None
    assert (differing.begin_percent, differing.value, differing.limit) == (0, 0, 99)
    assert scale_of(summary()) is None


@pytest.mark.parametrize(
    ("stable", "shadow", "shown"),
    [
        (
            {"y": {"datatype": "FP32", "shape": [1, 2], "values": [0.5, 1.0]}},
            {},
            [("output y", "FP32 [1, 2]", "0.5, 1", "none")],
        ),
        (
            {"error": {"datatype": "INT8", "shape": [99], "values": [1]}},
            {},
            [("output error", "INT8 [99]", "1 … 98 more", "none")],
        ),
        (
            {"y": {"datatype": "FP32", "shape": [1], "values": [0.5]}},
            {"error": "it broke"},
            [("answer", "", "answered", "it broke")],
        ),
    ],
    ids=["an output is missing", "an output may be called error", "an error in place of outputs"],
)
def test_a_kept_request_is_told_in_words(stable: Any, shadow: Any, shown: list[Any]) -> None:
    told = tensors_of({}, stable, shadow)
    assert [(each.name, each.kind, each.stable, each.shadow) for each in told] == shown
