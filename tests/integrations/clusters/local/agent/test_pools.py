"""Model pools of this machine: agent, Envoy, fetcher and runtimes are real."""

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.artifacts.store import digest_of_folder
from integrations.clusters.base import Desired, DesiredRevision, Logger, ReplicaPhase, Resources
from integrations.clusters.local.driver import LocalDriver
from integrations.clusters.local.envoy import maglev
from integrations.clusters.local.envoy.pools import hashed
from integrations.clusters.local.pid_files import read_record
from tests.integrations._support.runtimes import Cluster, Traffic, infer_json, until

POOL = "default/warm"
CODE = """
from fairlead_python import FP32

def predict(x: FP32[1, 4]) -> FP32[1, 4]:
    return x * 10
"""


def apply_pool(
    cluster: Cluster,
    generation: int = 1,
    replicas: int = 2,
    restart: int = 0,
    copies: Mapping[str, int] = MappingProxyType({}),
) -> None:
    revision = DesiredRevision("warm-00001", "warm", "1", "", "", replicas, 100, is_pool=True, restart_number=restart)
    revision = replace(revision, pool_copies=dict(copies))
    cluster.driver.apply(Desired("default", "warm", generation, (revision,)))


def pool_is_ready(cluster: Cluster, replicas: int = 2) -> bool:
    found = [each.phase for one in cluster.driver.observe("default", "warm").revisions for each in one.replicas]
    return found == [ReplicaPhase.READY] * replicas


def pids(cluster: Cluster) -> set[int]:
    records = (read_record(path) for path in cluster.layout.run.glob("default.warm-00001-*.json"))
    return {record.pid for record in records if record is not None and record.pid is not None}


def answer(cluster: Cluster, service: str, path: str = "infer") -> Any:
    status, headers, body = cluster.request(
        f"/serving/default/{service}/v2/models/{service}/{path}", "POST", infer_json(), content_type="application/json"
    )
    assert status == 200, body
    content = json.loads(body)
    assert content["model_name"] == service
    return content["outputs"][0]["data"], headers["fairlead-revision"], content["model_version"]


def test_services_without_replicas_are_answered_and_rolled_out_by_their_pools(
    cluster: Cluster, runtime: str, traffic: type[Traffic]
) -> None:
    cluster.start(runtime=runtime, start_s=60)
    cluster.apply(1, cluster.revision(2, 100, pool=POOL))
    assert cluster.observe().revisions == () or not cluster.observe().revisions[0].replicas
    apply_pool(cluster)
    cluster.until_weights(r2=100)
    until(lambda: pool_is_ready(cluster), f"both replicas of the pool are ready: {cluster.log()}")
    assert answer(cluster, "digits") == ([2, 4, 6, 8], "digits-00002", "2")
    with traffic(cluster.url) as sent:
        cluster.apply(2, cluster.revision(2, 50, pool=POOL), cluster.revision(3, 50, pool=POOL))
        cluster.until_weights(r2=50, r3=50)
        sent.until_sent(100)
        cluster.apply(3, cluster.revision(3, 100, pool=POOL))
        cluster.until_weights(r3=100)
        sent.until_sent(20)
        before = {cluster.pid(f"default.warm-00001-{number}") for number in range(2)}
        apply_pool(cluster, 2, restart=1)
        until(lambda: pool_is_ready(cluster) and not before & pids(cluster), "both replicas are others")
        sent.until_sent(20)
    assert sent.failures == []
    assert answer(cluster, "digits") == ([3, 6, 9, 12], "digits-00003", "3")


def test_requests_go_where_the_hash_says_over_both_protocols(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster)
    until(lambda: pool_is_ready(cluster), "the pool is ready before there is any artifact")
    services = [f"model-{number}" for number in range(8)]
    for service in services:
        cluster.apply_to(service, 1, cluster.revision(2, 100, pool=POOL))
    until(lambda: pool_is_ready(cluster), "the pool is ready")
    replicas = cluster.driver.observe("default", "warm").revisions[0].replicas
    names = [each.name for each in replicas]
    for service in services:
        until(lambda service=service: cluster.request(f"/serving/default/{service}/v2")[0] == 200, "it is routed")
        assert answer(cluster, service)[0] == [2, 4, 6, 8]
        home = replicas[maglev.chosen(names, hashed("default", service))]
        name = f'fairlead_inference_request_duration_us_count{{model="default.{service}"'
        assert name in cluster.driver.metrics_page("default", home), "it answered that the hash names"


def answered(cluster: Cluster, service: str, version: str = r"\d+") -> list[int]:
    """Return how many requests of a service, and of one of its versions, each replica of the pool has answered."""
    replicas = cluster.driver.observe("default", "warm").revisions[0].replicas
    pages = [cluster.driver.metrics_page("default", each) for each in replicas]
    mine = re.compile(
        rf'^nv_inference_request_success\{{model="default\.{service}",version="{version}".*\}} (\d+)', re.MULTILINE
    )
    return [sum(map(int, mine.findall(page))) for page in pages]


def test_a_shadow_in_a_pool_gets_copies_for_its_own_version_at_one_replica(
    cluster: Cluster, runtime: str, traffic: type[Traffic]
) -> None:
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster)
    until(lambda: pool_is_ready(cluster), "the pool is ready")
    cluster.apply(1, cluster.revision(2, 100, pool=POOL))
    cluster.until_weights(r2=100)
    cluster.apply(2, cluster.revision(2, 100, pool=POOL), cluster.revision(3, 0, pool=POOL, mirror_percent=100))
    cluster.until_weights(r2=100, r3=0)

    def copied() -> list[int]:
        return [number for number in answered(cluster, "digits", version="3") if number]

    with traffic(cluster.url, headers={"fairlead-model-version": "9"}) as sent:
        until(lambda: sum(copied()) > 40, f"copies arrive: {cluster.log()}")
        sent.until_sent(20)
    assert sent.failures == []
    assert set(sent.by_revision()) == {"digits-00002"}, "clients get stable's answers"
    assert len(copied()) == 1, "the replica that the hash names"
    assert len([number for number in answered(cluster, "digits", version="2") if number]) == 1
    (seen,) = [each for each in cluster.observe().revisions if each.name == "digits-00003"]
    assert (seen.mirror_percent, seen.weight_percent) == (100, 0)
    cluster.apply(3, cluster.revision(3, 100, pool=POOL))
    cluster.until_weights(r3=100)
    assert answer(cluster, "digits") == ([3, 6, 9, 12], "digits-00003", "3")


def test_a_hot_model_gets_copies_and_loses_them(cluster: Cluster, runtime: str, traffic: type[Traffic]) -> None:
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster, replicas=3)
    until(lambda: pool_is_ready(cluster, 3), "the pool is ready")
    cluster.apply(1, cluster.revision(2, 100, pool=POOL))
    cluster.apply_to("cold", 1, cluster.revision(2, 100, pool=POOL))
    cluster.until_weights(r2=100)
    before = {cluster.pid(f"default.warm-00001-{number}") for number in range(3)}
    with traffic(cluster.url) as sent:
        sent.until_sent(20)
        assert sum(number > 0 for number in answered(cluster, "digits")) == 1
        apply_pool(cluster, 2, replicas=3, copies={"default.digits": 3, "default.unknown": 2})
        until(lambda: all(answered(cluster, "digits")), f"each replica answers: {cluster.log()}")
        apply_pool(cluster, 3, replicas=3)
        until(lambda: cluster.driver.observe("default", "warm").generation == 3, "the agent has taken it up")

        def is_alone() -> bool:
            was = answered(cluster, "digits")
            sent.until_sent(20)
            return sum(now > then for then, now in zip(was, answered(cluster, "digits"), strict=True)) == 1

        until(is_alone, "one replica answers again")
    assert sent.failures == []
    assert pids(cluster) == before
    assert answer(cluster, "cold")[0] == [2, 4, 6, 8]
    assert sum(number > 0 for number in answered(cluster, "cold")) == 1


def test_a_model_in_python_has_a_worker_of_its_own(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=f"{runtime} --allow-python-models=true", start_s=60)
    apply_pool(cluster, replicas=1)
    artifact = cluster.home / "artifacts" / "code"
    (artifact / "1").mkdir(parents=True)
    (artifact / "config.pbtxt").write_text('backend: "python"')
    (artifact / "1" / "model.py").write_text(CODE)
    digest = digest_of_folder(artifact)
    revision = DesiredRevision("digits-00001", "digits", "1", artifact.as_uri(), digest, 1, 100, pool=POOL)
    cluster.apply(1, replace(revision, is_code=True))
    cluster.until_weights(r1=100)
    assert answer(cluster, "digits")[0] == [10, 20, 30, 40]


def test_a_service_moves_into_a_pool_and_out_of_it(cluster: Cluster, runtime: str, traffic: type[Traffic]) -> None:
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster, replicas=1)
    cluster.apply(1, cluster.revision(1, 100))
    cluster.until_weights(r1=100)
    with traffic(cluster.url) as sent:
        cluster.apply(2, cluster.revision(1, 50), cluster.revision(2, 50, pool=POOL))
        cluster.until_weights(r1=50, r2=50)
        sent.until_sent(30)
        cluster.apply(3, cluster.revision(2, 100, pool=POOL))
        cluster.until_weights(r2=100)
        cluster.apply(4, cluster.revision(2, 50, pool=POOL), cluster.revision(3, 50))
        cluster.until_weights(r2=50, r3=50)
        sent.until_sent(30)
        cluster.apply(5, cluster.revision(3, 100))
        cluster.until_weights(r3=100)
        sent.until_sent(20)
    assert sent.failures == []
    assert answer(cluster, "digits")[0] == [3, 6, 9, 12]


def test_a_pool_itself_answers_nothing(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster, replicas=1)
    until(lambda: pool_is_ready(cluster, 1), "the pool is ready")
    for path, method in (("/v2/models/warm/infer", "POST"), ("/v2", "GET")):
        status, _, body = cluster.request(f"/serving/default/warm{path}", method, infer_json())
        assert (status, b"is a model pool" in body) == (503, True), body


def test_no_request_fails_while_the_agent_is_killed_and_another_goes_on(
    cluster: Cluster, runtime: str, traffic: type[Traffic]
) -> None:
    cluster.hold()
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster)
    cluster.apply(1, cluster.revision(2, 100, pool=POOL))
    cluster.until_weights(r2=100)
    until(lambda: pool_is_ready(cluster), "the pool is ready")
    before = {name: cluster.pid(name) for name in ("gateway", "default.warm-00001-0", "default.warm-00001-1")}
    with traffic(cluster.url) as sent:
        sent.until_sent(10)  # the gateway requests a service's routes with its first request
        for _ in range(2):
            cluster.stop(signal.SIGKILL)
            sent.until_sent(100)
            cluster.start(runtime=runtime, start_s=60)
            sent.until_sent(100)
        cluster.until_weights(r2=100)
        assert {name: cluster.pid(name) for name in before} == before
        cluster.apply(2, cluster.revision(3, 100, pool=POOL))
        cluster.until_weights(r3=100)
        sent.until_sent(50)
    assert sent.failures == []


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("env", {"A": "b"}, "variables"),
        ("resources", Resources(accelerator="nvidia.com/gpu"), "a GPU"),
        ("max_concurrent_requests", 2, "a limit of concurrent requests"),
        ("logger", Logger("http://localhost/"), "a payload logger"),
    ],
)
def test_what_a_pool_cannot_serve_is_refused(tmp_path: Path, field: str, value: Any, what: str) -> None:
    revision = DesiredRevision("digits-00001", "digits", "1", "file:///x", "", 1, 100, pool=POOL)
    desired = Desired("default", "digits", 1, (replace(revision, **{field: value}),))
    with pytest.raises(InvalidInput, match=f"cannot serve {what}; leave the pool out"):
        LocalDriver(tmp_path).apply(desired)


def test_own_replicas_answer_in_place_of_the_pool_and_leave_to_it(
    cluster: Cluster, runtime: str, traffic: type[Traffic]
) -> None:
    cluster.hold()
    cluster.start(runtime=runtime, start_s=60)
    apply_pool(cluster, replicas=1)
    pooled = cluster.revision(2, 100, pool=POOL)
    cluster.apply(1, pooled)
    cluster.until_weights(r2=100)

    def seen() -> Any:
        return cluster.observe().revisions[0]

    with traffic(cluster.url) as sent:
        for generation in (2, 4):
            cluster.apply(generation, replace(pooled, own_replicas=2, own_since=float(generation)))
            until(lambda: not seen().pooled_as and seen().ready_replicas == 2, f"its own answer: {cluster.log()}")
            assert seen().slept_at == float(generation), "as the names of their clusters, whose counters are read"
            assert {each.name for each in seen().own_replicas} == {"digits-00002-0", "digits-00002-1"}
            sent.until_sent(20)
            if generation == 4:
                cluster.stop(signal.SIGKILL)
                sent.until_sent(20)
                cluster.start(runtime=runtime, start_s=60)
                until(lambda: not seen().pooled_as and seen().ready_replicas == 2, "they go on below the next agent")
                sent.until_sent(20)
            cluster.apply(generation + 1, replace(pooled, own_since=float(generation)))
            until(
                lambda: any(each.phase == ReplicaPhase.READY for each in seen().own), "the pool answers before they end"
            )
            until(lambda: seen().pooled_as and not seen().own, f"the pool answers, and they end: {cluster.log()}")
            sent.until_sent(20)
        cluster.apply(6, replace(pooled, own_replicas=1, own_since=6.0))
        until(lambda: not seen().pooled_as, "its own answers")
    assert sent.failures == []
    assert answer(cluster, "digits") == ([2, 4, 6, 8], "digits-00002", "2")
