"""`fairlead demo --once`: a canary to 100 %, a failing and a mistaken one rolled back, on real processes and Envoy."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Platform, family

pytestmark = pytest.mark.e2e


def demo(platform: Platform) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fairlead_cli", "demo", "--once", "--home", str(platform.home), "--hold", "3"]
    command += ["--address", f"127.0.0.1:{platform.port}", "--gateway-address", platform.gateway]
    return subprocess.run(command, env=platform.environment, capture_output=True, text=True, timeout=400, check=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo that ran: in a new one, or where `.ci/run` has begun with it, as a new user does."""
    if ran := os.environ.get("FAIRLEAD_TEST_DEMO_HOME"):
        return Path(ran)
    platform = Platform(tmp_path_factory.mktemp("demo") / ".fairlead")
    done = demo(platform)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return platform.home


@pytest.fixture(scope="module")
def report(home: Path) -> Any:
    return json.loads((home / "demo-report.json").read_text())


def test_it_holds(report: Any) -> None:
    assert report["ok"], report["checks"]


def test_v2_promoted_itself_through_every_step(report: Any) -> None:
    good = report["rollouts"][0]

    assert (good["phase"], good["from_version"], good["to_version"]) == ("Healthy", 1, 2)
    assert [step["weight_percent"] for step in report["steps"] if step["version"] == 2] == [10, 25, 50, 75, 100]
    assert [run["verdict"] for run in good["analysis_runs"]] == ["Successful"] * 5


def test_v3_was_rolled_back_for_its_errors(report: Any) -> None:
    bad = report["rollouts"][1]

    assert (bad["phase"], bad["to_version"]) == ("Degraded", 3)
    assert bad["analysis_runs"][-1]["verdict"] == "Failed"
    assert "requests to the canary failed" in bad["reason"]


def test_v4_was_rolled_back_for_its_wrong_answers_alone(report: Any) -> None:
    mistaken, answered = report["rollouts"][2], report["revisions"][3]

    assert (mistaken["phase"], mistaken["from_version"], mistaken["to_version"]) == ("Degraded", 2, 4)
    assert mistaken["analysis_runs"][-1]["verdict"] == "Failed"
    assert "answers of the canary are wrong" in mistaken["reason"]
    assert (answered["version"], answered["failed"]) == (4, 0)
    assert answered["accuracy_percent"] < 85


def test_labels_found_their_answers(report: Any) -> None:
    labels = report["labels"]

    assert labels["sent"] == report["requests"]["sent"] - report["requests"]["failed"]
    assert labels["joined"] >= 0.99 * labels["sent"], "those to the first requests may not be kept yet"
    assert (labels["unsent"], labels["unmatched"]) == (0, 0)


def test_only_the_bad_version_failed_requests(report: Any) -> None:
    failed = {row["version"]: bool(row["failed"]) for row in report["revisions"]}
    assert failed == {1: False, 2: False, 3: True, 4: False}
    assert report["requests"]["failed"] == report["revisions"][2]["failed"]
    assert {row["protocol"] for row in report["protocols"]} == {"grpc", "http-binary", "http-json"}


def test_the_answers_are_the_models(report: Any) -> None:
    trained = {row["name"]: row["accuracy_percent"] for row in report["training"]["versions"]}

    for row in report["revisions"][:2]:
        assert abs(row["accuracy_percent"] - trained[f"v{row['version']}"]) < 2.5


def test_nothing_is_left_behind(home: Path) -> None:
    assert family(home) == {}


def test_logs_hold_no_secret(home: Path) -> None:
    token, key = (home / "token").read_text().strip(), (home / "secret-key").read_text().strip()

    for log in home.rglob("*.log"):
        text = log.read_text(errors="replace")
        assert token not in text
        assert key not in text
