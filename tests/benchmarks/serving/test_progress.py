from pathlib import Path

from benchmarks.serving import progress
from benchmarks.serving.measuring import Measuring, Plan


def test_every_line_stands_below_its_headings() -> None:
    lines = [
        progress.HEADINGS,
        progress.turn(1, "fairlead", "mlp_small", "http", 32, 27187.6, 35.84),
        progress.alone(1, "bert_mini_batched", 16, 3.6, 277_000.0),
    ]
    assert lines[1].split() == ["1", "fairlead", "mlp_small", "http", "32", "27,187.6/s", "35.8", "us"]
    assert lines[2].split() == ["1", "alone", "bert_mini_batched", "16", "rows", "1", "3.6/s", "277,000.0", "us"]
    assert len({len(line) for line in lines}) == 1


def test_the_headings_are_said_once_before_the_rounds(tmp_path: Path) -> None:
    said: list[str] = []
    Measuring(Plan([], rounds=2, starts=1, alone={}), tmp_path, tmp_path, said.append).rounds([])
    assert said == [progress.HEADINGS]
