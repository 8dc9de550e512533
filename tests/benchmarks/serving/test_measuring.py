"""A server that dies in a run costs no other server its figures: real servers, real clients, a real SIGKILL."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving import loads, models, report
from benchmarks.serving.measuring import Measuring, Plan, Point
from benchmarks.serving.peers.base import Peer, Running
from benchmarks.serving.peers.limits import Prototype
from benchmarks.serving.processes import Process, any_core
from tests.servers.parts import MissingPartError, skip_or_fail

POINTS = (Point("mlp_small", "grpc", 1, 1), Point("mlp_small", "streams", 4, 1))
PLAN = Plan(POINTS, rounds=2, starts=1, alone={"mlp_small": (1,)})


class Mortal:
    """The prototype under another name; the test knows its process."""

    name = "mortal"
    requirements = ()
    serves = Prototype.serves
    pauses = True
    running: Running

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        own = scratch / self.name
        own.mkdir(exist_ok=True)
        self.running = Prototype(cores=any_core()).start(python, models, own)
        return self.running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if lacking := [each for each in loads.missing() if each != "wrk"] or ["a second core"] * (os.cpu_count() == 1):
        skip_or_fail(MissingPartError(f"{', '.join(lacking)} is missing; `make deps` installs nghttp2-client"))
    models.save("mlp_small", tmp_path / "mlp_small.onnx")
    return tmp_path


def measured(folder: Path, after_line: str, peer: Mortal) -> tuple[dict[str, Any], list[str]]:
    """Run the plan, in which the peer is killed after a line that begins so; return the results and the lines."""
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if line.split()[: len(after_line.split())] == after_line.split():
            os.kill(peer.running.process.pid, signal.SIGKILL)
            assert peer.running.process.ending(within_s=20)

    run = Measuring(PLAN, folder, folder, say)
    both: list[tuple[Peer, Path]] = [(peer, folder), (Prototype(cores=any_core()), folder)]
    run.rounds(both)
    return run.results, lines


def rows(results: dict[str, Any], server: str) -> list[tuple[int, str]]:
    return [(row["round"], row["form"]) for row in results["points"] if row["server"] == server]


EVERY = [(1, "grpc"), (1, "streams"), (2, "grpc"), (2, "streams")]


def test_a_server_that_dies_is_left_out_until_the_next_round_and_the_others_keep_their_turns(folder: Path) -> None:
    results, lines = measured(folder, "1 mortal mlp_small grpc", Mortal())
    assert rows(results, "prototype") == EVERY
    assert rows(results, "mortal") == [each for each in EVERY if each != (1, "streams")]
    (said,) = (line for line in lines if line.startswith("mortal:"))
    assert said == "mortal: it ended with code -9: it said nothing; left out of the rest of round 1"
    assert results["servers"]["mortal"]["problem"] in said


def test_a_server_that_does_not_come_back_is_left_out_and_the_run_goes_on(folder: Path) -> None:
    class Once(Mortal):
        def start(self, python: Path, models: Path, scratch: Path) -> Running:
            if not hasattr(self, "running"):
                return super().start(python, models, scratch)
            command = [sys.executable, "-c", "import sys; sys.exit('no such model')"]
            Process(command, scratch / "again.log", cores=any_core()).wait_until(lambda: False)
            raise AssertionError("it started")

    results, lines = measured(folder, "1 mortal mlp_small grpc", Once())
    assert rows(results, "prototype") == EVERY
    assert rows(results, "mortal") == [(1, "grpc")]
    died, did_not_start = (line for line in lines if line.startswith("mortal:"))
    assert died.endswith("left out of the rest of round 1")
    assert did_not_start == "mortal: it ended with code 1: no such model"
    assert f"mortal      {results['servers']['mortal']['problem']}" in list(report.lines(results))


def test_a_server_that_dies_between_two_rounds_misses_none(folder: Path) -> None:
    results, lines = measured(folder, "1 prototype mlp_small streams", Mortal())
    assert rows(results, "prototype") == rows(results, "mortal") == EVERY
    assert "mortal: it ended with code -9: it said nothing" in lines


def test_an_error_that_says_nothing_is_a_line_too(folder: Path) -> None:
    class Refused(Mortal):
        def start(self, python: Path, models: Path, scratch: Path) -> Running:
            raise TimeoutError

    results, lines = measured(folder, "never", Refused())
    assert rows(results, "prototype") == EVERY
    assert "mortal: TimeoutError" in lines
