"""Services that are asleep: agent, Envoy and runtimes are real, and requests wait in Envoy until a replica is ready."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from typing import Any, cast
from urllib.parse import urlsplit

import grpc
import pytest

from common.errors import Unavailable
from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.local.agent.pools.members import Pools
from integrations.clusters.local.agent.service import Service
from integrations.clusters.local.envoy.names import ClusterUse, cluster_name
from integrations.clusters.local.envoy.wake import HELD_OF_SERVICE
from integrations.metrics.counters import collect
from tests.integrations._support.runtimes import INFER, Cluster, infer_json, infer_message, until

PATH = "/serving/default/digits/v2/models/digits"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
METADATA = (("fairlead-service", "default/digits"),)


def channel_to(netloc: str) -> Any:
    return grpc.insecure_channel(netloc)


def infer(cluster: Cluster) -> tuple[int, dict[str, str], bytes]:
    return cluster.request(f"{PATH}/infer", "POST", infer_json(), content_type="application/json")


def asleep(cluster: Cluster, generation: int, number: int = 2, **more: Any) -> DesiredRevision:
    """Put the revision to sleep, and wait until it is."""
    revision = cluster.revision(number, 100, 0, slept_at=time.time(), **more)
    cluster.apply(generation, revision)

    def sleeps() -> bool:
        seen = cluster.observe()
        its = seen.revision(revision.name)
        return seen.generation == generation and its is not None and not its.replicas and its.weight_percent == 100

    until(sleeps, f"it is asleep: {cluster.log()}")
    return revision


def counted_by_gateway(cluster: Cluster) -> int:
    with suppress(Unavailable):
        samples = collect(cluster.observe(), cluster.driver.metrics_page)
        return sum(each.requests for each in samples if each.source == "gateway")
    return 0


def test_requests_of_every_kind_wait_and_are_answered(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=runtime, start_s=60)
    netloc = urlsplit(cluster.url).netloc

    def http1() -> Any:
        status, headers, body = infer(cluster)
        return status, headers.get("fairlead-revision"), json.loads(body).get("outputs", body)

    def http2() -> Any:
        command = ["curl", "-s", "--http2-prior-knowledge", "-o", os.devnull, "-w", "%{http_code} %{http_version}"]
        command += ["--max-time", "30", "--data-binary", infer_json().decode(), f"{cluster.url}{PATH}/infer"]
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout

    def unary() -> Any:
        with channel_to(netloc) as channel:
            return len(channel.unary_unary(INFER)(infer_message(), metadata=METADATA, timeout=30)) > 0

    def stream() -> Any:
        with channel_to(netloc) as channel:
            calls = channel.stream_stream(STREAM)(iter([infer_message()] * 3), metadata=METADATA, timeout=30)
            return len(list(calls))

    for generation in (1, 2):  # asleep again, without replicas having been desired meanwhile
        asleep(cluster, generation)
        began = time.monotonic()
        with ThreadPoolExecutor(8) as clients:
            found = [clients.submit(each) for each in (http1, http2, unary, stream, http1)]
            answers = [each.result() for each in found]
        assert time.monotonic() - began < 20
        assert answers[0][:2] == (200, "digits-00002"), answers
        assert answers[1:4] == ["200 2", True, 3], answers
        seen = cluster.observe().revisions[0]
        assert seen.woken_at is not None
        assert len(seen.replicas) == 1
        until(lambda: counted_by_gateway(cluster) >= 3, "the gateway counts them by the revision")


def test_as_many_wait_as_may_and_as_long_as_they_may(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=runtime, start_s=60, held_s=4)
    asleep(cluster, 1)
    netloc = urlsplit(cluster.url).netloc

    def unary() -> tuple[Any, Any]:
        with channel_to(netloc) as channel:
            try:
                channel.unary_unary(INFER)(infer_message(), metadata=METADATA, timeout=30)
            except grpc.RpcError as error:
                return error.code(), error.details()
        return None, None

    with cluster.paused(), ThreadPoolExecutor(200) as clients:
        began = time.monotonic()
        late = clients.submit(unary)
        sent = [clients.submit(infer, cluster) for _ in range(140)]
        until(lambda: any(each.done() for each in sent), "some are refused at once", 3)
        refused = unary()
        found = Counter(
            (status, body, headers.get("retry-after")) for status, headers, body in (each.result() for each in sent)
        )
    unready = b"the service was asleep, and no replica was ready within 4 s; try again soon"
    bounded = b"the service is asleep, and as many requests wait for its first replica as may; try again soon"
    said = {(503, b'{"error":"' + each + b'"}\n', "5") for each in (unready, bounded)}
    assert found.keys() == said, found
    assert all(number <= 2 * HELD_OF_SERVICE for number in found.values())
    assert refused == (grpc.StatusCode.UNAVAILABLE, bounded.decode())
    code, details = late.result()
    assert (code, details.encode() in (unready, bounded)) == (grpc.StatusCode.UNAVAILABLE, True)
    assert time.monotonic() - began < 15
    until(lambda: infer(cluster)[0] == 200, "it is answered", 30)


def test_what_only_looks_wakes_nothing(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=runtime, start_s=60)
    asleep(cluster, 1)
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/digits/ready", "/v1/models/digits"):
        status, headers, body = cluster.request(f"/serving/default/digits{path}")
        assert (status, headers["content-type"]) == (200, "application/json"), body
        assert json.loads(body).popitem()[1] is True
    for path, status in (("/stats", 503), ("/unknown", 404), ("/infer", 405)):
        assert cluster.request(PATH + path)[0] == status
    with channel_to(urlsplit(cluster.url).netloc) as channel:
        ready = channel.unary_unary("/inference.GRPCInferenceService/ModelReady")
        with pytest.raises(grpc.RpcError, match="is asleep: the next infer call wakes it"):
            ready(b"", metadata=METADATA, timeout=20)
    assert "a request wakes" not in cluster.log()
    assert not cluster.observe().revisions[0].replicas
    assert cluster.request(PATH)[0] == 200  # its metadata is what a client's first request may be
    assert "a request wakes" in cluster.log()


def test_services_wake_beside_one_that_cannot_start(cluster: Cluster, runtime: str) -> None:
    cluster.start(runtime=runtime, start_s=60)
    asleep(cluster, 1, content=b"no model at all")
    cluster.apply_to("other", 1, cluster.revision(3, 100, 0, slept_at=time.time()))
    until(lambda: cluster.request("/serving/default/other/v2/health/live")[0] == 200, "the gateway knows the other")
    with ThreadPoolExecutor(2) as clients:
        broken = clients.submit(infer, cluster)
        until(lambda: "a request wakes service default/digits" in cluster.log(), "it is woken")
        path = "/serving/default/other/v2/models/other/infer"
        assert cluster.request(path, "POST", infer_json())[0] == 200
        status, _, body = broken.result()
    assert status == 503
    assert b"service default/digits was asleep and has no replica that serves: it " in body
    assert infer(cluster)[0] == 503  # at once: it is started again by its backoff, and not by requests


def test_requests_wait_while_gateway_or_agent_is_killed(cluster: Cluster, runtime: str) -> None:
    cluster.hold()
    cluster.start(runtime=runtime, start_s=60)
    asleep(cluster, 1)
    gateway = cluster.pid("gateway")
    os.kill(gateway, signal.SIGKILL)

    def is_held_again() -> bool:
        with suppress(OSError, HTTPException):
            alive = cluster.request("/serving/default/digits/v2/health/live")[0] == 200
            return alive and cluster.pid("gateway") != gateway
        return False

    until(is_held_again, "another gateway knows that it is asleep")
    with ThreadPoolExecutor(1) as clients:
        with cluster.paused():
            waiting = clients.submit(infer, cluster)
            until(lambda: cluster.request("/serving/default/digits/v2/health/live")[0] == 200, "the gateway answers")
            assert cluster.agent is not None
            cluster.agent.kill()
        cluster.stop(signal.SIGKILL)
        cluster.start(runtime=runtime, start_s=60)
        assert waiting.result()[0] == 200
    pid = cluster.pid("default.digits-00002-0")
    cluster.stop(signal.SIGKILL)  # awake, though the control plane has not said so yet: it stays with the next agent
    cluster.start(runtime=runtime, start_s=60)
    cluster.until_ready(1)
    assert infer(cluster)[0] == 200
    assert cluster.pid("default.digits-00002-0") == pid


def test_only_the_clusters_of_the_present_sleep_wake_it() -> None:
    before, now = 1_780_000_000.0, 1_790_000_000.5
    revision = DesiredRevision("digits-00001", "digits", "1", "", "", 0, 100, slept_at=now)

    def asked(slept_at: float, name: str = "digits-00001") -> str:
        return cluster_name("default", name, ClusterUse.INFER, slept_at)

    service, beside = (Service(cast("Any", None), Pools(), "default", "digits") for _ in range(2))
    for each in (service, beside):
        each.take(Desired("default", "digits", 1, (revision,)), deleted=False)
    for stranger in (asked(before), asked(0), asked(now, "digits-0000"), "*", "", "default/digits-00001/http~x"):
        assert not service.wake(stranger, now + 1)
    assert service.observed(None, {}, "").revisions[0].woken_at is None
    assert service.wake(asked(now), now + 1)
    assert not service.wake(asked(now), now + 2), "it is awake"
    assert service.observed(None, {}, "").revisions[0].woken_at == now + 1
    beside.stay_awake(now + 3)  # its gateway is of a release that holds no requests
    assert beside.observed(None, {}, "").revisions[0].woken_at == now + 3
