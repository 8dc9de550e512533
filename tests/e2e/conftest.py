"""Fixtures of the end-to-end tests: trained models, and a platform that a module shares."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Platform


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's three models and its held-out images."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(folder)], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One running platform for a module, which logs requests."""
    made = Platform(tmp_path_factory.mktemp("e2e") / ".fairlead", options=("--log-requests",))
    made.start()
    yield made
    assert made.process is not None
    if made.process.poll() is None:
        made.stop()
