"""The times of a suite are all written, whatever its tests do, and the report has the slowest first."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.suites import table

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.fixture(scope="module")
def slow():
    deadline = __import__("time").monotonic() + 0.2
    while __import__("time").monotonic() < deadline:
        pass

@pytest.mark.parametrize("number", range(3))
def test_passes(number, slow):
    pass

def test_fails():
    assert __import__("pathlib").Path("mended").exists()

def test_is_skipped():
    pytest.skip("for want of a part")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_few.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(folder: Path, *flags: str) -> dict[str, Any]:
    """Run the suite `few` and return what was written."""
    file = folder / "times" / "few.json"
    command = [sys.executable, "-m", "pytest", "-p", "tests.suites.timings", "--timings", str(file), *flags]
    subprocess.run(
        [*command, "test_few.py"], cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.mark.parametrize("flags", [(), ("--numprocesses=2",)], ids=["one process", "two workers"])
def test_every_test_and_fixture_is_in_the_file(folder: Path, flags: tuple[str, ...]) -> None:
    found = run(folder, *flags)

    assert (found["suite"], found["summary"]) == ("few", "1 failed, 3 passed, 1 skipped")
    outcomes = {name.partition("::")[2]: test["outcome"] for name, test in found["tests"].items()}
    passed = {f"test_passes[{number}]": "passed" for number in range(3)}
    assert outcomes == {**passed, "test_fails": "failed", "test_is_skipped": "skipped"}
    assert found["skipped"] == {"for want of a part": 1}
    assert {(each["name"], each["scope"]) for each in found["fixtures"]} == {("slow", "module")}
    assert all(each["seconds"] >= 0.2 for each in found["fixtures"])
    assert found["processor_seconds"] > 0.2


def test_what_failed_and_ran_once_more_replaces_its_first_result_alone(folder: Path) -> None:
    first = run(folder)
    (folder / "mended").touch()
    found = run(folder, "--once-more", "--last-failed")

    assert found["summary"] == "1 failed, 3 passed, 1 skipped; once more: 1 passed"
    assert len(found["tests"]) == 5
    assert found["tests"]["test_few.py::test_fails"]["outcome"] == "passed"
    assert found["seconds"] > first["seconds"]


def suite(name: str, began: float, seconds: float) -> dict[str, Any]:
    tests = {
        f"tests/test_a.py::test_{number}": {"outcome": "passed", "setup": 0.0, "call": float(number), "teardown": 0.5}
        for number in range(1, 4)
    }
    fixtures = [
        {"name": "cluster", "scope": "module", "seconds": 3.0, "test": "tests/test_a.py::test_1"},
        {"name": "plane", "scope": "session", "seconds": 5.0, "test": "tests/test_a.py::test_1"},
        {"name": "cluster", "scope": "module", "seconds": 4.0, "test": "tests/test_a.py::test_2"},
    ]
    return {
        "suite": name,
        "began": began,
        "seconds": seconds,
        "processor_seconds": 60.0,
        "summary": "3 passed",
        "tests": tests,
        "fixtures": fixtures,
        "skipped": {"no GPU": 2},
    }


def test_the_report_has_the_slowest_first_and_ends_with_the_table() -> None:
    lines = list(table.report([suite("test", 0.0, 120.0), suite("browser", 60.0, 120.0)], 2))

    assert lines[1:3] == [
        "     3.5 s  tests/test_a.py::test_3 (setup 0.0, call 3.0, teardown 0.5)",
        "     2.5 s  tests/test_a.py::test_2 (setup 0.0, call 2.0, teardown 0.5)",
    ]
    assert lines[4:6] == [
        "     7.0 s  cluster (module), 2 times; 4.0 s for tests/test_a.py::test_2",
        "     5.0 s  plane (session), 1 times; 5.0 s for tests/test_a.py::test_1",
    ]
    assert lines[6] == "== test: 2 skipped: no GPU"
    assert lines[-1] == "| from first to last | 3.0 | 2.0 | | 6 | |"
    assert lines[-3] == "| test | 2.0 | 1.0 | 1 | 3 | 3 passed |"


def test_without_a_suite_that_ran_it_says_how_to_run_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table.main([str(tmp_path)]) == 1
    assert "run one, such as `make test`" in capsys.readouterr().err
