"""A runtime of the first release, in pods as the present one renders them."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from integrations.clusters.base import Job, JobKind
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.cluster._support.node import images
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import model
from tests.releases.packages import first_runtime

pytestmark = pytest.mark.cluster
IMAGE = "fairlead/serving-runtime:first"


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    first = images.serving_runtime(first_runtime(tmp_path_factory.mktemp("first_runtime")))
    with harness(plane, tmp_path_factory.mktemp("cluster"), images={IMAGE: first}) as running:
        options = replace(running.options, runtime_image=IMAGE, jobs_namespace="default")
        yield replace(running, options=options, driver=KubernetesDriver(running.api, options))


def test_it_serves(on_kubernetes: OnKubernetes, cluster: Harness) -> None:
    on_kubernetes.version(1)
    on_kubernetes.apply(policy=None)
    on_kubernetes.until_ready("digits-00001", 1)
    on_kubernetes.until_routed()
    said = cluster.kubelet.pod("digits-00001").said("reports", previous=False)
    assert said == b"nothing is recorded: this runtime of an earlier release does not report\n"


def test_it_is_asked(cluster: Harness) -> None:
    stored = cluster.store(model(1))
    result = cluster.driver.run(Job(JobKind.INSPECT, stored.uri, 300, stored.digest))
    assert (result.exit_code, result.message) == (0, "")
    assert json.loads(result.output)["schema"] == "fairlead.inspect/v1"
