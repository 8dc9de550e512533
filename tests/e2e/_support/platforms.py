"""Trained models, and an empty platform for a module: fixtures for all tests of whole platforms."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e._support.shared import SharedPlatforms
from tests.e2e.harness import Platform
from tests.e2e.kubernetes import on_kubernetes

LONG_ON_KUBERNETES = pytest.mark.parametrize(
    "anywhere",
    ["local", pytest.param("kubernetes", marks=[pytest.mark.cluster, pytest.mark.long])],
    indirect=True,
    scope="module",
)
"""For what other tests find on a cluster, too, as the drivers' contract does."""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's three models and its held-out images."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(folder)], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module", params=["local", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def anywhere(
    request: pytest.FixtureRequest, shared_platforms: SharedPlatforms, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """An empty platform for a module: its services on this machine, and once more on a Kubernetes cluster."""
    if request.param == "local":
        yield request.getfixturevalue("platform")
        return
    plane, folder = request.getfixturevalue("plane"), tmp_path_factory.mktemp("e2e")
    with shared_platforms.lend("kubernetes", lambda: on_kubernetes(plane, folder)) as running:
        yield running


@pytest.fixture(scope="module")
def platform(shared_platforms: SharedPlatforms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """An empty platform for a module, which logs requests."""
    folder = tmp_path_factory.mktemp("e2e")
    with shared_platforms.lend("local", lambda: started(folder, "--log-requests")) as running:
        yield running


@contextmanager
def started(folder: Path, *options: str, python: str = sys.executable, **variables: str) -> Iterator[Platform]:
    """Give a running platform of its own, with these options and variables; a test may end it, too."""
    made = Platform(folder / ".fairlead", options=options, variables=variables, python=python)
    made.start()
    try:
        yield made
    finally:
        assert made.process is not None
        if made.process.poll() is None:
            made.stop()
