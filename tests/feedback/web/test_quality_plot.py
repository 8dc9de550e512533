"""The plot of quality: places, gaps, axes and its words."""

from datetime import UTC, datetime, timedelta

import pytest

from feedback.domain.quality import Series, Sums
from feedback.domain.scorers import Unit
from feedback.web.quality_plot import HEIGHT, WIDTH, drawing, shown

PERCENT, NATS = Unit("percent wrong", 100.0), Unit("nats", 10.0)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def series(*wrong: int | None, each: timedelta = HOUR, of: int = 100) -> Series:
    return [(NOON + each * index, Sums(of, w, w)) for index, w in enumerate(wrong) if w is not None]


def test_a_line_for_each_revision_with_gaps_and_an_interval() -> None:
    found = drawing(
        [("stable", "stable", series(2, 3, None, 4)), ("canary", "canary", series(10, 20, 20, 30))], PERCENT, each=HOUR
    )
    assert found is not None
    stable, canary = found.lines
    assert [len(run.split()) for run in stable.runs] == [2, 1]
    assert len(stable.bands) == 1
    assert [len(run.split()) for run in canary.runs] == [4]
    assert [dot.words for dot in stable.dots][-1] == "stable, 2026-01-31 15:00 UTC: 4\N{NO-BREAK SPACE}% of 100 labels"
    assert canary.dots[0].y < stable.dots[0].y, "worse is higher"
    assert all(0 <= dot.x <= WIDTH and 0 <= dot.y <= HEIGHT for line in found.lines for dot in line.dots)
    assert [tick.label for tick in found.times] == ["12:00", "13:00", "14:00", "15:00"]
    assert [tick.label.replace("\N{NO-BREAK SPACE}", " ") for tick in found.values] == [
        "0 %",
        "10 %",
        "20 %",
        "30 %",
        "40 %",
    ]
    assert found.period == "hour"
    assert found.words.startswith("Percent wrong over time; the newest period: stable 4")


@pytest.mark.parametrize(
    ("hours", "period", "label"),
    [
        pytest.param(1, "hour", "12:00", id="one point"),
        pytest.param(24 * 7, "6 hours", "02-01", id="a week"),
        pytest.param(24 * 30, "day", "02-01", id="a month"),
        pytest.param(24 * 90, "3 days", "02-01", id="a quarter"),
    ],
)
def test_long_times_have_longer_periods(hours: int, period: str, label: str) -> None:
    found = drawing([("stable", "stable", series(*[1] * hours))], PERCENT, each=HOUR)
    assert found is not None
    assert len(found.lines[0].dots) <= 31
    if hours > 1:
        assert found.period == period
    assert found.times[0].label == label


def test_minutes_are_drawn_where_all_is_recent() -> None:
    found = drawing([("stable", "stable", series(1, 2, 3, each=MINUTE))], PERCENT, each=MINUTE)
    assert found is not None
    assert (found.period, len(found.lines[0].dots)) == ("minute", 3)


def test_no_scores_no_plot_and_no_losses_a_scale() -> None:
    assert drawing([], PERCENT, each=HOUR) is None
    assert drawing([("stable", "stable", [])], PERCENT, each=HOUR) is None
    nothing = drawing([("stable", "stable", [(NOON, Sums(1, 0.0, 0.0))])], NATS, each=HOUR)
    assert nothing is not None
    assert nothing.lines[0].dots[0].words == "stable, 2026-01-31 12:00 UTC: 0 of 1 label"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(3.25, PERCENT, "3.25 %"), (0.00012, NATS, "0.00012"), (12345.6, NATS, "12,346"), (None, NATS, "\N{EN DASH}")],
)
def test_numbers_are_short(value: float | None, unit: Unit, text: str) -> None:
    assert shown(value, unit).replace("\N{NO-BREAK SPACE}", " ") == text
