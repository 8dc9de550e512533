"""Models that take over their check by a process that checks others too: they reach neither it nor the others."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integrations.clusters.base import Job, JobKind, JobResult
from integrations.clusters.local.jobs.checker import Checker, checker
from serving_runtime.shared import landlock, seccomp, single_process
from tests.security._support import taken_over_check
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.skipif(
    landlock.version() < landlock.FILES or not seccomp.supported() or any(Path("/dev").glob("nvidia*")),
    reason="each model is checked by a process of its own here",
)
PROGRAM = (sys.executable, "-I", taken_over_check.__file__)


class Checked:
    """A checker, and models that attack it."""

    def __init__(self, folder: Path, found: Checker) -> None:
        self._folder, self.checker = folder, found
        onnx_models.mlp(folder / "sound" / "1" / "model.onnx")

    def attacked(self, attack: str, timeout_s: float = 30.0) -> JobResult | None:
        place = self._folder / attack / "1"
        onnx_models.mlp(place / "model.onnx")
        secret = self._folder / "secret"
        secret.write_text("secret")
        (place / "attack.json").write_text(json.dumps({"attack": attack, "secret": str(secret)}))
        return self.checker.run(Job(JobKind.INSPECT, place.parent.as_uri(), timeout_s))

    def is_sound(self) -> bool:
        result = self.checker.run(Job(JobKind.INSPECT, (self._folder / "sound").as_uri(), 30.0))
        return result is not None and result.exit_code == 0 and "onnxruntime_onnx" in result.output


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Checked]:
    with checker(tmp_path / "jobs", 30.0, program=PROGRAM) as found:
        assert found is not None
        yield Checked(tmp_path, found)
        assert found.runs


def said(result: JobResult | None) -> dict[str, object]:
    assert result is not None
    found: dict[str, object] = json.loads(json.loads(result.output)["error"])
    return found


def test_a_model_that_takes_over_its_check_reaches_nothing(checked: Checked) -> None:
    assert checked.is_sound()
    found = said(checked.attacked("reach"))
    assert found["reached"] == []
    assert found["threads"] == 1
    assert len(found["files"]) == 4  # type: ignore[arg-type]
    assert checked.is_sound()


def test_a_model_that_starts_processes_has_none(checked: Checked) -> None:
    assert said(checked.attacked("fork_bomb")) == {"made": 0}
    assert checked.is_sound()


@pytest.mark.parametrize("attack", ["hang", "stop"])
def test_a_model_that_does_not_answer_costs_its_own_time(checked: Checked, attack: str) -> None:
    result = checked.attacked(attack, timeout_s=1.0)
    assert result == JobResult(124, "", "the inspect of the model did not finish within 1 s")
    assert checked.is_sound()


@pytest.mark.parametrize("attack", ["outlive", "giant", "crash", "eat"])
def test_a_model_that_ends_its_check_has_no_answer_and_stops_no_other(checked: Checked, attack: str) -> None:
    assert checked.attacked(attack, timeout_s=8.0) is None
    assert checked.is_sound()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_jump_of_the_filter_lands_inside_it(machine: str) -> None:
    program = single_process.program(machine, 4711)
    steps = [program[at : at + 8] for at in range(0, len(program), 8)]
    for place, step in enumerate(steps):
        code, then, otherwise = int.from_bytes(step[:2], "little"), step[2], step[3]
        if code & 7 == 5:  # a jump
            assert place + 1 + max(then, otherwise) < len(steps)
    assert steps[-1][0] == 6  # the last returns
