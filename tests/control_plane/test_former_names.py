"""Deployments made for release 0.1.0 name `fairlead.settings`, `fairlead.asgi` and `celery -A fairlead`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLATFORM = Path(__file__).parents[2] / "platform"
TIMEOUT_S = 60


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        pytest.param(
            ["-m", "celery", "-A", "fairlead", "inspect", "--help"], "inspect [OPTIONS]", id="the worker and beat"
        ),
        pytest.param(
            ["-c", "from fairlead.asgi import application as made; print(type(made).__name__)"], "Handler", id="web"
        ),
        pytest.param(["-m", "django", "check"], "no issues", id="commands"),
    ],
)
def test_what_the_release_before_starts_still_starts(tmp_path: Path, command: list[str], answer: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PLATFORM),
        "DJANGO_SETTINGS_MODULE": "fairlead.settings",
        "FAIRLEAD_HOME": str(tmp_path),
        "FAIRLEAD_SECRET_KEY": "only-for-a-test-" + "x" * 40,
    }
    ended = subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert answer in ended.stdout + ended.stderr
