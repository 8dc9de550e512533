import pytest

from benchmarks.serving import loads
from benchmarks.serving.measuring import Plan, Point, plan


def test_every_server_has_the_first_turn_and_those_that_are_compared_have_the_others() -> None:
    point = Point("mlp_small", "http", 32, seconds=1, turns=2)
    order = point.order(["fairlead", "echo", "triton"])
    assert order == [(0, "fairlead"), (0, "echo"), (0, "triton"), (1, "fairlead"), (1, "triton")]
    assert Point("mlp_small", "http", 8, seconds=1).order(["fairlead", "echo"]) == [(0, "fairlead"), (0, "echo")]


@pytest.mark.parametrize(("rows_per_s", "count"), [(85.0, 88), (11.6, 16), (0.1, 16)])
def test_a_turn_has_about_the_requests_of_its_seconds_and_as_many_for_each_connection(
    rows_per_s: float, count: int
) -> None:
    assert Point("bert_mini", "http", 8, seconds=1, counted=True).count(rows_per_s) == count


@pytest.mark.parametrize("planned", [plan(quick=True), plan(quick=False)])
def test_what_is_counted_is_run_alone_at_sizes_in_their_order(planned: Plan) -> None:
    heavy = [point for point in planned.points if point.counted]
    assert {point.model for point in heavy} == {"bert_mini", "resnet50", "bert_mini_batched"}
    for point in heavy:
        sizes = planned.alone[point.model]
        assert list(sizes) == sorted(set(sizes))


def test_the_rate_of_counted_requests_is_theirs_from_the_first_start_to_the_last_answer() -> None:
    log = "".join(f"{1_700_000_000_000_000 + 10_000 * number}\t200\t{10_000 + number}\n" for number in range(1, 101))
    found = loads.counted(log)
    assert (found.per_s, found.count) == (pytest.approx(100 / 1.0001), 100)
    assert (found.p50_us, found.p99_us) == pytest.approx((10_050.5, 10_099.99))
