"""A whole cluster of real processes for tests: agent, Envoy, replicas, and clients that keep sending."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations._support.runtimes import RUNTIME, Cluster, Traffic, until


@pytest.fixture(scope="session")
def make_cluster() -> type[Cluster]:
    """For modules whose tests share one cluster; they close it themselves."""
    return Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of its own, with no agent yet."""
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def runtime() -> str:
    """The command of the real serving runtime."""
    return RUNTIME


@pytest.fixture
def traffic() -> type[Traffic]:
    return Traffic


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return until
