"""Fuzzes every target one after another (`make fuzz`): a line of progress every half minute, and a table at the end.

usage: python -m tests.serving_runtime.fuzz.campaign FINDINGS_FOLDER SECONDS [TARGET ...]

A target that finds something ends, and the next begins; so does one that does not end by itself. Ends with 1 where
anything was found. What a target printed is left in FINDINGS_FOLDER/TARGET.log.
"""

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "platform"))

from integrations.sandbox import ability
from integrations.sandbox.policy import Mode
from tests.serving_runtime.fuzz import model_files

TARGETS = (
    *("http", "infer", "plain", "grpc", "h2", "config", "tensors", "service-file", "cluster-file"),
    *model_files.BACKENDS,
)
_LINE = re.compile(r"^#(\d+)\s.*?cov: (\d+)", re.MULTILINE)
_PROGRESS_S = 30.0
_START_AND_END_S = 120.0
"""That a target may take beside its time: libraries are imported, the last file is loaded."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a target.

    Attributes:
        runs, coverage: as libFuzzer counts them.
        files: of a target of model files: how many ran, were refused, ended their process.
        error: why it ended; empty where its time was over.
    """

    target: str
    runs: int
    coverage: int
    took_s: float
    files: dict[str, int] = field(default_factory=dict)
    error: str = ""

    def line(self) -> str:
        """Return a line of the table."""
        files = ", ".join(f"{count} {name}" for name, count in self.files.items())
        return (
            f"{self.target:<14}{self.runs:>10}{self.coverage:>10}{self.took_s:>8.0f}  {self.error or 'nothing found'}"
            + (f" ({files})" if files else "")
        )


def fuzz(target: str, findings: Path, seconds: int) -> Outcome:
    """Fuzz one target for some seconds, and say how it gets on."""
    log = findings / f"{target}.log"
    files = model_files.outcomes_file(findings, target)
    files.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.serving_runtime.fuzz", target, str(findings)]
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen([*command, f"-max_total_time={seconds}"], stdout=output, stderr=subprocess.STDOUT)
    error = ""
    try:
        while (spent := time.monotonic() - began) < seconds + _START_AND_END_S:
            try:
                process.wait(_PROGRESS_S)
                break
            except subprocess.TimeoutExpired:
                runs, coverage = counted(log.read_text(errors="replace"))
                _say(f"  {target}: {spent + _PROGRESS_S:.0f} s, {runs} runs, coverage {coverage}")
        else:
            error = f"did not end by itself, see {log}"
    finally:
        if process.poll() is None:
            process.kill()
        code = process.wait()
    if code and not error:
        error = f"FOUND something, see {log}"
    runs, coverage = counted(log.read_text(errors="replace"))
    outcomes = json.loads(files.read_text()) if files.is_file() else {}
    return Outcome(target, runs, coverage, time.monotonic() - began, outcomes, error)


def counted(log: str) -> tuple[int, int]:
    """Return the runs and the coverage of libFuzzer's last line; zeros before the first."""
    lines = _LINE.findall(log)
    return (int(lines[-1][0]), int(lines[-1][1])) if lines else (0, 0)


def main(findings: str, seconds: str, *targets: str) -> int:
    folder = Path(findings)
    folder.mkdir(exist_ok=True)
    _say(f"Model files are loaded in the sandbox: {ability.shortfall(Mode.BEST) or ability.WHOLE}")
    outcomes = []
    for target in targets or TARGETS:
        _say(f"Fuzzing {target} for {seconds} s")
        outcomes.append(fuzz(target, folder, int(seconds)))
    _say(f"\n{'target':<14}{'runs':>10}{'coverage':>10}{'s':>8}")
    for outcome in outcomes:
        _say(outcome.line())
    return int(any(outcome.error for outcome in outcomes))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a program's output


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
