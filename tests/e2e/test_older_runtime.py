"""The present control plane with the serving runtime of the release before: it checks, serves and rolls out models."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e._support.platforms import started
from tests.e2e.harness import ROOT, Platform, failed, serve_digits, traffic, until
from tests.releases.packages import python_with_first_runtime

pytestmark = pytest.mark.e2e

POLICY = """
name: quick
strategy: canary
steps:
  - {weight: 50, hold: 1s, analysis: {minRequests: 30, maxErrorPercent: 1.0, maxSlowPercent: 90, deadline: 1m}}
scaleDownDelay: 1s
"""


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Platform]:
    """A platform whose Python has the older runtime."""
    with started(tmp_path, python=str(python_with_first_runtime(tmp_path / "older"))) as platform:
        yield platform


def test_a_canary_is_checked_measured_and_promoted_with_the_runtime_of_the_release_before(
    older: Platform, models: Path, tmp_path: Path
) -> None:
    serve_digits(older, models, POLICY)
    with traffic(older, models, tmp_path, "default/digits") as log:
        done = older.fairlead("rollouts", "start", "digits", "--version", "2", "--wait", "-o", "json", check=False)
        until(lambda: (log.read(), log.requests[-1].revision == "digits-00002")[1], what="answers of the canary")

    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert (ended["phase"], ended["weight_actual"]) == ("Healthy", 100)
    assert failed(log) == []
    served_by = Path(f"/proc/{older.pid('digits-00002')}/cmdline").read_text().split("\0")[0]
    code = "import serving_runtime; print(serving_runtime.__file__)"
    found = subprocess.run([served_by, "-I", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(tmp_path / "older")
