"""The example's README, command by command as a reader types them, on a platform of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.harness import ROOT, Platform
from tests.servers import network
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = [pytest.mark.e2e, pytest.mark.long]

EXAMPLE = ROOT / "examples" / "question-similarity"
BLOCKS = re.findall(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
WAIT_S = 1800
LOVELY = ["The weather is lovely today.", "The weather is lovely today.", "It's so sunny outside!"]
OTHERS = ["It's so sunny outside!", "He drove to the stadium.", "He drove to the stadium."]
PUBLISHED = [0.6660, 0.1046, 0.1411]
"""Sentence Transformers' documentation, quickstart: the similarities of these sentences by all-MiniLM-L6-v2."""


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    shutil.copytree(EXAMPLE, tmp_path / "examples" / EXAMPLE.name, ignore=shutil.ignore_patterns("build"))
    (tmp_path / ".venv").symlink_to(sys.prefix)
    made = Platform(tmp_path / ".fairlead", options=("--allow-python-models",))
    yield made
    if made.process is not None:
        made.stop()


def typed(platform: Platform, block: str) -> str:
    """Return what the commands of a block print; what installs packages is typed outside of the test's network."""
    command = ["bash", "-eu", "-c", block.replace("127.0.0.1:8090", platform.gateway)]
    done = subprocess.run(
        network.outside(*command) if "prepare.py" in block else command,
        cwd=platform.home.parent,
        env={**platform.environment, "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, (block, done.stdout, done.stderr)
    return done.stdout


def test_the_readme_can_be_followed(platform: Platform) -> None:
    prepare, serve, over_v2, over_v1, roll_out = BLOCKS
    try:
        typed(platform, prepare)
    except AssertionError as error:
        if "'-m', 'pip', 'install'" not in str(error):  # not the command that failed
            raise
        skip_or_fail(MissingPartError(f"the example's weights cannot be fetched with pip: {str(error)[-300:]}"))
    platform.start()
    typed(platform, serve)
    assert json.loads(typed(platform, over_v2))["outputs"][0]["data"] == pytest.approx([0.8419], abs=1e-3)
    assert json.loads(typed(platform, over_v1))["predictions"] == [
        pytest.approx([0.8419], abs=1e-3),
        pytest.approx([0.0599], abs=1e-3),
    ]
    texts = {"first": LOVELY, "second": OTHERS}
    pairs = [{"name": name, "datatype": "BYTES", "shape": [3, 1], "data": data} for name, data in texts.items()]
    url = f"http://{platform.gateway}/serving/default/question-similarity/v2/models/question-similarity/infer"
    answer = httpx.post(url, json={"inputs": pairs}, timeout=60, trust_env=False).json()
    assert answer["outputs"][0]["data"] == pytest.approx(PUBLISHED, abs=2e-4)

    said = typed(platform, roll_out)
    assert "Healthy" in said
    asked = ("rollouts", "comparison", "question-similarity", "-o", "json")
    [step] = json.loads(platform.fairlead(*asked).stdout)["steps"]
    assert step["pairs"] >= 100
    assert step["agreement_percent"] >= 95
    [similarity] = step["outputs"]
    assert similarity["absolute"]["largest"] > 1e-3, "a quantised encoder answers a little differently"
