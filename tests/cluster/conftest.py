"""A cluster with the real runtime for each module, and the reconciler's platform on it."""

from collections.abc import Iterator

import pytest

from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.cluster.platform import OnKubernetes


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def on_kubernetes(db: None, cluster: Harness) -> Iterator[OnKubernetes]:
    platform = OnKubernetes(harness=cluster)
    yield platform
    platform.remove()
