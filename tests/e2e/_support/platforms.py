"""Trained models, and a platform that a module shares: fixtures for all tests of whole platforms."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Platform
from tests.e2e.kubernetes import on_kubernetes


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's three models and its held-out images."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(folder)], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module", params=["local", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def anywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One running platform for a module: its services on this machine, and once more on a Kubernetes cluster.

    A module whose tests need what the driver for Kubernetes has not yet says so as `KUBERNETES_LACKS`.
    """
    if request.param == "local":
        yield request.getfixturevalue("platform")
        return
    lacking = getattr(request.module, "KUBERNETES_LACKS", "")
    if lacking:
        pytest.skip(f"the driver for Kubernetes lacks {lacking}")
    with on_kubernetes(request.getfixturevalue("plane"), tmp_path_factory.mktemp("e2e")) as running:
        yield running


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One running platform for a module, which logs requests."""
    made = Platform(tmp_path_factory.mktemp("e2e") / ".fairlead", options=("--log-requests",))
    made.start()
    yield made
    assert made.process is not None
    if made.process.poll() is None:
        made.stop()
