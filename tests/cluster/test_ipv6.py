"""A cluster of IPv6 alone: Services, pods, API server, kubelet and gateway have no other addresses."""

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv6Address
from urllib.parse import urlsplit

import pytest

from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import Reach
from tests.cluster._support.gateway import gateway_api
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane, control_plane
from tests.integrations._support.runtimes import Traffic
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster

_PARTS = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    try:
        with control_plane(is_ipv6=True) as running:
            gateway_api.install(running)
            yield running
            for part in _PARTS:  # a server that ends in order waits for its watches
                running.stop(part)
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_a_canary_is_promoted_over_ipv6_alone(on_kubernetes: OnKubernetes) -> None:
    platform, cluster = on_kubernetes, on_kubernetes.harness
    platform.version(1)
    platform.version(2)
    platform.policy(name="by-weight", steps=[{"weight": 50, "hold": "2s"}], scaleDownDelay="2s")
    platform.apply(policy="by-weight")
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()
    _check_addresses(cluster)

    with Traffic(cluster.gateway.url, clients=1) as traffic:
        traffic.until_sent(20, within_s=60)
        platform.start("2")
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        seen = traffic.by_revision()
        assert min(seen["digits-00001"], seen["digits-00002"]) > 0, seen
        platform.until_only(traffic, "digits-00002")
    assert traffic.failures == []

    observed = cluster.driver.observe("default", "digits")
    (stable,) = (each for each in observed.revisions if each.name == "digits-00002")
    (replica,) = stable.replicas
    assert IPv6Address(urlsplit(replica.metrics_url).hostname or "")
    for reach in Reach:  # the replica's page, directly and through the API server
        driver = KubernetesDriver(cluster.api, replace(cluster.options, reach=reach))
        assert "nv_inference_request_success" in driver.metrics_page("default", replica)
    assert cluster.driver.log("default", "digits", replica.name), "the API server asks the kubelet"


def _check_addresses(cluster: Harness) -> None:
    """Fail unless all addresses that the cluster gives are of IPv6."""
    with cluster.plane.client() as client:
        pods = client.get(resource_types.POD.path("default")).json()["items"]
        services = client.get(resource_types.SERVICE.path("default")).json()["items"]
    found = [each["status"]["podIP"] for each in pods]
    found += [each["spec"]["clusterIP"] for each in services if each["spec"]["clusterIP"] != "None"]
    assert len(found) > 2
    for address in found:
        IPv6Address(address)
