"""pytest plugin: writes how long each test and fixture of a suite took to a JSON file, which `table.py` reads.

`pytest -p tests.suites.timings --timings FILE`. Works with and without pytest-xdist: the workers measure fixtures, the
controller collects. A run with `--once-more` updates the file of the run before it, so that the file always has the
last result of each test.

The file: `{"suite", "began", "seconds", "processor_seconds", "summary", "tests": {nodeid: {"outcome", "setup", "call",
"teardown"}}, "fixtures": [{"name", "scope", "seconds", "test"}], "skipped": {reason: count}}`, times in seconds.
"""

import json
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.fixtures import FixtureDef, SubRequest
from _pytest.terminal import TerminalReporter

_LEAST_S = 0.05
"""Fixtures below are not kept: there are a hundred thousand of them."""
_WRITE_EVERY_S = 20.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timings", type=Path, metavar="FILE", help="write the time of each test and fixture as JSON")
    parser.addoption("--once-more", action="store_true", help="update the times of the run before this one")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.timings:
        config.pluginmanager.register(Timings(config), "suite-timings")


class Timings:
    """Collects what one process knows; the controller of several merges what its workers send."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.time()
        self._tests: dict[str, dict[str, Any]] = {}
        self._skipped: Counter[str] = Counter()
        self._fixtures: list[dict[str, Any]] = []
        self._is_worker = hasattr(config, "workeroutput")
        self._file: Path = config.option.timings
        again = config.option.once_more and self._file.exists()
        self._before: dict[str, Any] = json.loads(self._file.read_text()) if again else {}
        self._written = self._began

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: FixtureDef[Any], request: SubRequest) -> Iterator[None]:
        """Measure one fixture without those it depends on, which were made before."""
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            if seconds >= _LEAST_S:
                self._fixtures.append(
                    {
                        "name": fixturedef.argname,
                        "scope": fixturedef.scope,
                        "seconds": round(seconds, 3),
                        "test": request._pyfuncitem.nodeid,
                    }
                )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the time of a phase, and the worst outcome of a test's phases."""
        test = self._tests.setdefault(report.nodeid, {"outcome": "passed"})
        test[report.when or "call"] = round(report.duration, 3)
        if report.outcome != "passed" and test["outcome"] != "failed":
            test["outcome"] = report.outcome
        if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
            self._skipped[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1

        if not self._is_worker and time.time() - self._written > _WRITE_EVERY_S:
            self._write("under way")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take what a worker sent when it ended; one that crashed sent nothing."""
        self._fixtures += getattr(node, "workeroutput", {}).get("fixtures", [])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send what a worker measured to its controller."""
        if self._is_worker:
            self._config.workeroutput["fixtures"] = self._fixtures

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Write the file; a worker, which has a terminal too, has sent what it knows."""
        if self._is_worker:
            return
        words, _ = terminalreporter.build_summary_stats_line()
        self._write(", ".join(text for text, _ in words if not text.endswith("deselected")))

    def _write(self, summary: str) -> None:
        """Replace the file; what a run before this one found of other tests stays."""
        before = self._before
        made = {
            "suite": self._file.stem,
            "began": before.get("began", self._began),
            "seconds": round(time.time() - self._began + before.get("seconds", 0.0), 3),
            "processor_seconds": round(_processor_s() + before.get("processor_seconds", 0.0), 3),
            "summary": f"{before['summary']}; once more: {summary}" if before else summary,
            "tests": before.get("tests", {}) | self._tests,
            "fixtures": before.get("fixtures", []) + self._fixtures,
            "skipped": before.get("skipped", {}) | self._skipped,
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(made))
        new.rename(self._file)
        self._written = time.time()


def _processor_s() -> float:
    """Return the processor time of this process and of those that it waited for: the workers and what they ran."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
