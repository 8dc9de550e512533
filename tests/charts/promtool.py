"""Prometheus' own tests of rules and expressions (`promtool test rules`)."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.servers.parts import MissingPartError, skip_or_fail


def program() -> str:
    """Return promtool's path; skips the test where it is not installed."""
    found = shutil.which("promtool")
    if found is None:
        skip_or_fail(MissingPartError("promtool is not installed; `make deps` installs the Debian package prometheus"))
    return found


def check_alert(
    folder: Path,
    *,
    rule: dict[str, Any],
    records: Sequence[dict[str, Any]] = (),
    series: Mapping[str, str],
    at: str,
    expected: list[dict[str, Any]],
    interval: str = "15s",
) -> None:
    """Fail unless exactly the expected alerts of a rule fire at `at`.

    Args:
        records: the rules of the series that it reads.
        interval: of the samples of series and of evaluations.
    """
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "tested", "rules": [*records, rule]}]}))
    looked = {"eval_time": at, "alertname": rule["alert"], "exp_alerts": expected}
    _test(folder, series, {"rule_files": ["rules.yaml"]}, {"alert_rule_test": [looked]}, interval)


def check_values(folder: Path, *, expression: str, series: Mapping[str, str], expected: Mapping[str, float]) -> None:
    """Fail unless an expression is the expected values, by the labels' text, 4 minutes after the series began."""
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    looked = {"expr": expression, "eval_time": "4m", "exp_samples": samples}
    _test(folder, series, {}, {"promql_expr_test": [looked]})


def _test(
    folder: Path, series: Mapping[str, str], file: dict[str, Any], test: dict[str, Any], interval: str = "15s"
) -> None:
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    tests = [{"interval": interval, "input_series": inputs, **test}]
    (folder / "test.yaml").write_text(yaml.safe_dump({**file, "evaluation_interval": interval, "tests": tests}))
    command = [program(), "test", "rules", "test.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
