"""What a tuning measured, as rows and as a drawing."""

from model_jobs.tunings.domain.plot import HEIGHT, WIDTH, drawing_of, points_of
from tests.deployments._support.tuning_points import BEST, FAST, NOW

REPORT = {"frontier": [FAST, BEST], "chosen": {**BEST, "config": {}}, "baseline": NOW, "points": [FAST, BEST, NOW]}


def test_each_setting_is_there_once_with_its_notes_the_quickest_first() -> None:
    rows = points_of(REPORT)
    assert [(row.p99_ms, row.notes) for row in rows] == [(1, ()), (4, ("chosen",)), (9, ("as it is",))]
    same = points_of({"frontier": [BEST], "chosen": BEST, "baseline": BEST})
    assert [row.notes for row in same] == [("chosen", "as it is")]


def test_throughput_goes_up_and_latency_across_within_the_picture() -> None:
    drawn = drawing_of(REPORT, 5.0)
    assert drawn is not None
    best = {dot.label: dot for dot in drawn.dots if dot.kind == "best"}
    assert best["chosen"].y < best["as it is"].y
    assert best["chosen"].x < drawn.limit.at < best["as it is"].x
    assert all(0 < dot.x < WIDTH and 0 < dot.y < HEIGHT for dot in drawn.dots)
    assert drawn.line == " ".join(
        f"{dot.x},{dot.y}" for dot in drawn.dots if dot.kind == "best" and dot.label != "as it is"
    )
    assert drawn.up[0].label == "0"
    assert drawn.up[-1].label == "1,000"
    assert "chosen: 900 requests/s with a p99 of 4.00 ms" in drawn.words


def test_without_a_measurement_nothing_is_drawn() -> None:
    assert drawing_of({"chosen": None, "reason": "nothing could be measured"}, 5.0) is None
    assert points_of({}) == ()
