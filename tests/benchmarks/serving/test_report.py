import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from benchmarks.serving import gate, plot, report
from benchmarks.serving.report import Place


def _point(
    server: str, form: str, calls: int, per_s: float, cpu_us: float, model: str = "mlp_small", number: int = 1
) -> dict[str, Any]:
    row = {"server": server, "model": model, "form": form, "calls": calls, "round": number}
    return {**row, "per_s": per_s, "count": 100, "cpu_us": cpu_us, "p50_us": 1e6 / per_s, "p99_us": None}


def _rounds(server: str, rates: list[float], cpu_us: float) -> list[dict[str, Any]]:
    return [_point(server, "http", 32, per_s, cpu_us, number=number) for number, per_s in enumerate(rates, 1)]


def _turns(
    calls: int, rates: list[float], model: str, batches: dict[str, int], alone_s: list[dict[str, float]]
) -> list[dict[str, Any]]:
    """Return Fairlead's turns in one round, and how long a run by itself took around each."""
    return [
        {**_point("fairlead", "http", calls, per_s, 1.0, model), "turn": turn, "batches": batches, "alone_s": lone}
        for turn, (per_s, lone) in enumerate(zip(rates, alone_s, strict=True))
    ]


@pytest.fixture
def results() -> dict[str, Any]:
    points = [
        # The machine is ten times slower in the second round.
        *_rounds("fairlead", [30000.0, 3000.0, 31000.0], 25.0),
        *_rounds("triton", [6000.0, 600.0, 7000.0], 150.0),
        *_rounds("mlserver", [1500.0, 150.0, 1500.0], 600.0),
        *_rounds("prototype", [40000.0, 4000.0, 41000.0], 20.0),
        *_turns(8, [9.6, 4.9, 9.5], "resnet50", {"1": 100}, [{"1": 0.1}, {"1": 0.2}, {"1": 0.1}]),
        *_turns(32, [80.0], "bert_mini_batched", {"1": 2, "16": 1, "31": 2, "32": 1}, [{"1": 0.012, "32": 0.4}]),
    ]
    alone = [{"round": 1, "model": "resnet50", "rows": 1, "runs_per_s": 10.0, "cpu_us": 100000.0}]
    servers = {
        name: {"ready_s": [2.0], "rss_mb": [300.0], "problem": ""}
        for name in ("fairlead", "triton", "mlserver", "prototype")
    }
    servers["kserve"] = {"ready_s": [], "rss_mb": [], "problem": "pip could not install kserve"}
    return {"servers": servers, "points": points, "alone": alone}


def _target(results: dict[str, Any], words: str) -> report.Target:
    (found,) = [target for target in report.targets(results) if words in target.what]
    return found


def test_a_ratio_is_the_median_of_the_rounds_own_and_higher_is_better_for_rates_and_for_processor_time(
    results: dict[str, Any],
) -> None:
    found = report.ratios(results)
    assert found["mlp_small http c=32 / triton rate"] == 5.0
    assert found["mlp_small http c=32 / triton cpu"] == 6.0
    assert found["mlp_small http c=32 / prototype cpu"] == 0.8


def test_targets_say_what_is_reached_what_is_missed_and_what_was_not_measured(results: dict[str, Any]) -> None:
    assert _target(results, "HTTP binary, 32 at once: times Triton").verdict == "reached"
    assert _target(results, "best of the Python servers") == (
        "HTTP, 32 at once: times the best of the Python servers",
        15.0,
        20.0,
    )
    assert _target(results, "gRPC, 32 at once: times Triton").verdict == "not measured"


def test_dynamic_batches_are_compared_with_the_same_batches_alone(results: dict[str, Any]) -> None:
    found = _target(results, "dynamic batches").found
    alone_s = 2 * 0.012 + (0.012 + 15 / 31 * 0.388) + 2 * (0.012 + 30 / 31 * 0.388) + 0.4
    assert found == pytest.approx(alone_s / (100 / 80))


def test_a_heavy_model_is_compared_with_itself_alone_around_each_turn(results: dict[str, Any]) -> None:
    assert _target(results, "resnet50").found == pytest.approx(0.96)
    assert _target(results, "resnet50").verdict == "MISSED"


def test_results_from_before_there_were_turns_are_read_and_say_that_heavy_models_were_not_measured(
    results: dict[str, Any],
) -> None:
    for row in results["points"]:
        for key in ("turn", "batches", "alone_s"):
            row.pop(key, None)
    assert _target(results, "resnet50").verdict == "not measured"
    assert report.ratios(results)["mlp_small http c=32 / triton rate"] == 5.0


def test_the_report_tells_why_a_server_was_not_measured(results: dict[str, Any]) -> None:
    text = "\n".join(report.lines(results))
    assert "pip could not install kserve" in text
    assert re.search(r"mlp_small http c=32 +30,000\.0 +6,000\.0 +1,500\.0 +40,000\.0", text)


def test_the_gate_names_what_fell_below_what_was_recorded_and_lets_the_rest_pass(results: dict[str, Any]) -> None:
    recorded = report.ratios(results)
    assert gate.worse(recorded, recorded) == []
    for row in results["points"]:
        if row["server"] == "fairlead":
            row["cpu_us"] *= 1.5
    (first, *_), names = gate.worse(recorded, report.ratios(results)), "mlp_small http c=32 / triton cpu"
    assert first == f"{names}: 4.00 times, where 6.00 was recorded and 4.80 is the least"


def test_the_gate_says_how_many_ratios_it_compared_and_where_it_compared_none(results: dict[str, Any]) -> None:
    recorded = report.ratios(results)
    assert gate.passed(recorded, recorded).startswith("none of the 6 ratios that were compared is worse")
    assert gate.passed(recorded, {}).startswith("nothing was compared")


def test_the_report_shows_targets_that_were_measured_and_counts_the_others(results: dict[str, Any]) -> None:
    lines = list(report.lines(results))
    shown = [line for line in lines if any(target.what in line for target in report.targets(results))]
    assert len(shown) == 7
    assert not any("not measured" in line for line in lines)
    assert lines[-1] == "5 of 12 targets need servers or points that were not in this run"


def test_the_report_says_which_models_were_loaded_and_nothing_where_older_results_do_not(
    results: dict[str, Any],
) -> None:
    results["servers"]["fairlead"]["models"] = ["mlp_small", "resnet50"]
    lines = list(report.lines(results))
    assert any(line.endswith("300 MB resident when idle with mlp_small, resnet50 loaded") for line in lines)
    assert any(line.startswith("triton") and line.endswith("resident when idle") for line in lines)


def test_a_faster_machine_passes_the_gate_and_so_does_a_server_that_is_missing_today(results: dict[str, Any]) -> None:
    recorded = report.ratios(results)
    for row in results["points"]:
        row["per_s"] /= 3
        row["cpu_us"] *= 3
    results["points"] = [row for row in results["points"] if row["server"] != "mlserver"]
    assert gate.worse(recorded, report.ratios(results)) == []


def test_the_plot_has_a_bar_for_each_server_the_quickest_first(results: dict[str, Any]) -> None:
    places = [(Place("mlp_small", "http", 32), "HTTP"), (Place("mlp_small", "grpc", 32), "gRPC")]
    root = ET.fromstring(plot.bars(report.cells(results), places))
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert texts == ["HTTP", "prototype", "40,000", "fairlead", "30,000", "triton", "6,000", "mlserver", "1,500"]
    widths = [float(node.attrib["width"]) for node in root.iter() if node.tag.endswith("rect")]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > 0
