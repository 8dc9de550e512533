"""A cluster with the real runtime for each module, the reconciler's platform on it, and servers beside the cluster."""

from collections.abc import Iterator

import pytest

from tests.cluster._support.api_clients import client
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.servers.postgres import Postgres, postgres
from tests.servers.redis import Redis, redis

__all__ = ["client"]


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def on_kubernetes(db: None, cluster: Harness) -> Iterator[OnKubernetes]:
    platform = OnKubernetes(harness=cluster)
    yield platform
    platform.remove()


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Postgres, Redis]]:
    """A PostgreSQL and a Redis that are no part of what is installed on the cluster."""
    with postgres() as database, redis() as broker:
        yield database, broker
