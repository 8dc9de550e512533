"""What the analysis knows of requests on Kubernetes: the pods' own counters, by whichever way they are read."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from common.errors import Unavailable
from deployments.domain.analysis.evidence.totals import add, begin
from deployments.models import AnalysisRun
from integrations.clusters.base import Desired, DesiredRevision, Observed, ReplicaPhase, Sample
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import Reach
from integrations.metrics import counters
from tests.cluster._support.platform import OnKubernetes
from tests.cluster._support.removal import remove
from tests.cluster.harness import Harness
from tests.integrations._support.runtimes import Traffic, infer_json, model, until

pytestmark = pytest.mark.cluster
WITHIN_S = 300.0


@pytest.fixture
def api(cluster: Harness) -> Iterator[Api]:
    made = Api(cluster.plane.kubeconfig)
    yield made
    made.close()


def collected(driver: KubernetesDriver, seen: Observed) -> tuple[Sample, ...]:
    return counters.collect(seen, driver.metrics_page)


def test_requests_and_restarts_of_pods_are_counted_the_same_by_both_ways(cluster: Harness, api: Api) -> None:
    stored = cluster.store(model(2))
    wanted = DesiredRevision("counted-00001", "counted", "1", stored.uri, stored.digest, 1, 100)
    drivers = [KubernetesDriver(api, replace(cluster.options, reach=reach)) for reach in Reach]
    driver = drivers[0]

    def routed() -> Observed | None:
        driver.apply(Desired("default", "counted", 1, (wanted,)))
        seen = driver.observe("default", "counted")
        return seen if seen.revisions and seen.revisions[0].weight_percent == 100 else None

    seen = until(routed, "the revision is routed", WITHIN_S)
    assert seen is not None
    model_url = f"{cluster.gateway.url}/serving/default/counted/v2/models/counted"
    ready = f"{model_url}/ready"  # which nobody counts
    until(lambda: httpx.get(ready, timeout=60, trust_env=False).is_success, "the gateway has its endpoints", WITHIN_S)
    url = f"{model_url}/infer"
    before = begin(collected(driver, seen), since=0.0)
    for body in (
        infer_json(),
        infer_json(),
        b'{"inputs": [{"name": "y", "datatype": "FP32", "shape": [1], "data": [1]}]}',
    ):
        httpx.post(url, content=body, timeout=60, trust_env=False)
    samples = [collected(driver, seen) for driver in drivers]
    assert samples[0] == samples[1]
    counts = add(before, samples[0]).of("counted-00001")
    assert (counts.requests, counts.client_errors, counts.server_errors) == (3, 1, 0)
    assert counts.latency.total == 2

    cluster.kubelet.pod("counted-00001").crash("runtime")

    def again() -> tuple[Sample, ...] | None:
        seen = driver.observe("default", "counted")
        replicas = seen.revisions[0].replicas
        if [(each.phase, each.restarts) for each in replicas] != [(ReplicaPhase.READY, 1)]:
            return None
        try:
            return collected(driver, seen)
        except Unavailable:
            return None  # the cluster has not noticed yet

    after = until(again, "the container runs again", WITHIN_S)
    assert after is not None
    counts = add(add(before, samples[0]), after).of("counted-00001")
    assert (counts.requests, counts.server_errors) == (4, 1), "the restart is an error"
    remove(driver, "counted", 2)


def test_a_canary_is_judged_by_what_its_pods_counted(on_kubernetes: OnKubernetes) -> None:
    platform = on_kubernetes
    platform.version(1)
    platform.version(2)
    gate = {"minRequests": 40, "maxErrorPercent": 5, "maxErrorIncreasePercent": 5, "maxSlowPercent": 100}
    platform.policy(name="judged", steps=[{"weight": 50, "analysis": gate}], scaleDownDelay="2s")
    platform.apply(policy="judged", replicas=1)
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()
    platform.start("2")
    with Traffic(platform.harness.gateway.url, clients=1) as traffic:
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
    assert traffic.failures == []
    run = AnalysisRun.objects.get()
    assert run.verdict == "Successful"
    assert run.canary_requests >= 40
    assert run.canary_requests <= traffic.by_revision()["digits-00002"], "nothing is counted twice"
