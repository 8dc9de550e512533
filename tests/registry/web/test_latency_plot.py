"""How measured latencies are drawn and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.web.latency_plot import HEIGHT, WIDTH, Measured, drawing, duration, measured

ROWS = (Measured(1, 1000.0, 1500.0), Measured(8, 2000.0, 7100.0))


def test_a_profile_is_read_in_the_order_of_batch_sizes() -> None:
    batches = [
        {"batch_size": 8, "iterations": 50, "latency_p50_us": 2000.0, "latency_p99_us": 7100.0},
        {"batch_size": 1, "iterations": 50, "latency_p50_us": 1000.0, "latency_p99_us": 1500.0},
    ]
    assert measured({"batches": batches}) == ROWS
    assert measured({}) == ()
    assert [round(row.rows_per_second) for row in ROWS] == [1000, 4000]


def test_without_a_measurement_nothing_is_drawn() -> None:
    assert drawing([("version 1", ())]) is None


def test_a_drawing_has_round_labels_from_nothing_to_above_the_largest() -> None:
    made = drawing([("version 1", ROWS)])
    assert made is not None
    assert [tick.label.replace("\u00a0", " ") for tick in made.latencies] == ["0 µs", "2 ms", "4 ms", "6 ms", "8 ms"]
    assert [tick.label for tick in made.batches] == ["1", "8"]
    assert made.words.replace("\u00a0", " ") == "Median by batch size, version 1: 1 ms for 1, 2 ms for 8"


def test_two_versions_share_the_scale_and_a_place_for_each_batch_size() -> None:
    made = drawing([("version 1", ROWS), ("version 2", (Measured(2, 500.0, 600.0),))])
    assert made is not None
    assert [tick.label for tick in made.batches] == ["1", "2", "8"]
    assert [(line.statistic, line.side) for line in made.lines] == [("p99", 0), ("p50", 0), ("p99", 1), ("p50", 1)]
    assert made.lines[3].dots[0].x == made.batches[1].at


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1, max_size=9))
def test_everything_stays_inside_with_few_labels(latencies: list[tuple[float, float]]) -> None:
    rows = tuple(Measured(2**index, min(pair), max(pair)) for index, pair in enumerate(latencies))
    made = drawing([("version 1", rows)])
    assert made is not None
    assert 2 <= len(made.latencies) <= 6
    for line in made.lines:
        assert all(0 <= dot.x <= WIDTH and 0 <= dot.y <= HEIGHT for dot in line.dots)


@pytest.mark.parametrize(
    ("us", "shown"), [(8.04, "8.04 µs"), (850.0, "850 µs"), (1234.0, "1.23 ms"), (45_600.0, "45.6 ms"), (3e6, "3 s")]
)
def test_durations_have_three_digits_and_a_unit(us: float, shown: str) -> None:
    assert duration(us).replace("\u00a0", " ") == shown
