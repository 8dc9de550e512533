"""Requests at once of each caller: the gateway gives each replica its share, and real runtimes refuse what is above."""

import json
import struct
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from common.errors import Unavailable
from integrations.clusters.base import CallerKeys, Desired, DesiredRevision, Limits
from integrations.metrics.pages import read
from serving_runtime.proto import ModelInferRequest
from tests._support.gateway import GOOD, PUBLIC, token
from tests.integrations._support.runtimes import INFER, Cluster

PATH = "/serving/default/digits/v2/models/digits/infer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
HEADER = "fairlead-caller-limit"
LIMIT, ROWS = 4, 16
TOO_MANY = 429
HELD = {
    "max_batch_size": ROWS,
    "dynamic_batching": {"preferred_batch_size": [ROWS], "max_queue_delay_microseconds": 3_600_000_000},
}
"""Requests wait until there are ROWS rows of them: a test decides when they are answered."""


def apply(cluster: Cluster, generation: int, *revisions: DesiredRevision, limit: int | None = LIMIT) -> None:
    limits = Limits(caller_concurrent_requests=limit)
    cluster.driver.apply(Desired("default", "digits", generation, revisions, limits=limits))


def key(name: str) -> dict[str, str]:
    return {"authorization": "Bearer " + token(replace(GOOD, key=name, token_id=f"id-{name}"))}


class Clients:
    """Send requests at once, each on a connection of its own."""

    def __init__(self, url: str, pool: ThreadPoolExecutor) -> None:
        self._url = url
        self._pool = pool

    def begin(self, headers: dict[str, str], how: str = "http", rows: int = 1) -> Future[int]:
        return self._pool.submit(getattr(self, how), headers, rows)

    def http(self, headers: dict[str, str], rows: int = 1) -> int:
        content = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 4], "data": [1.0] * 4 * rows}]}
        found = httpx.post(self._url + PATH, json=content, headers=headers, timeout=60, trust_env=False)
        if found.status_code == TOO_MANY:
            assert found.json()["error"].startswith("too many requests at once: ")
            assert found.headers["retry-after"] == "1"
        return found.status_code

    def unary(self, headers: dict[str, str], rows: int = 1) -> int:
        with grpc.insecure_channel(self._url.removeprefix("http://")) as channel:
            return _status(lambda: channel.unary_unary(INFER)(_message(rows), metadata=_metadata(headers), timeout=60))

    def stream(self, headers: dict[str, str], rows: int = 1) -> int:
        with grpc.insecure_channel(self._url.removeprefix("http://")) as channel:
            call = channel.stream_stream(STREAM)
            sent = [_message(rows)]
            return _status(lambda: list(call(iter(sent), metadata=_metadata(headers), timeout=60)))


def _message(rows: int) -> bytes:
    request = ModelInferRequest(model_name="digits", raw_input_contents=[struct.pack("<4f", 1, 2, 3, 4) * rows])
    request.inputs.add(name="x", datatype="FP32", shape=[rows, 4])
    return bytes(request.SerializeToString())


def _metadata(headers: dict[str, str]) -> list[tuple[str, str]]:
    return [("fairlead-service", "default/digits"), *headers.items()]


def _status(call: Any) -> int:
    """Return 200 for OK, 429 for RESOURCE_EXHAUSTED with the sentence; raises for anything else."""
    try:
        call()
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "too many requests at once" in error.details():
            return TOO_MANY
        raise
    return 200


@contextmanager
def clients(cluster: Cluster) -> Iterator[Clients]:
    with ThreadPoolExecutor(32) as pool:
        yield Clients(cluster.url, pool)


def in_flight(cluster: Cluster) -> float:
    pages = [read(each.metrics_url) for revision in cluster.observe().revisions for each in revision.replicas]
    return sum(
        sample.value
        for page in pages
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "fairlead_inflight_requests"
    )


@pytest.fixture
def held(cluster: Cluster, runtime: str) -> Cluster:
    """Return a cluster whose service holds requests of less than ROWS rows."""
    cluster.start(runtime=runtime)
    cluster.driver.apply_keys(CallerKeys(public=(PUBLIC,)))
    apply(cluster, 1, cluster.revision(1, 100, model_config=HELD))
    cluster.until_ready(1)
    cluster.until_weights(r1=100)
    return cluster


def test_a_caller_gets_no_more_than_its_limit_and_another_is_served(held, eventually):
    forged = key("greedy") | {HEADER: "100", "fairlead-caller": "somebody"}
    with clients(held) as send:
        for how in ("http", "unary", "stream"):
            sent = [send.begin(forged, how) for _ in range(2 * LIMIT)]
            eventually(
                lambda sent=sent: sum(each.done() for each in sent) == LIMIT, "those above the limit are answered"
            )
            assert [each.result() for each in sent if each.done()] == [TOO_MANY] * LIMIT, how
            eventually(lambda: in_flight(held) == LIMIT, "the others reach the model")
            assert {getattr(send, other)(forged) for other in ("http", "unary", "stream")} == {TOO_MANY}
            nobody = [send.begin({"fairlead-caller": f"invented-{n}"}) for n in range(2 * LIMIT)]
            eventually(lambda nobody=nobody: sum(each.done() for each in nobody) == LIMIT, "requests without a key")
            assert send.http(key("polite"), ROWS - 2 * LIMIT) == 200, "which fills the batch"
            assert Counter(each.result() for each in (*sent, *nobody)) == {200: 2 * LIMIT, TOO_MANY: 2 * LIMIT}, how


def test_a_limit_changes_without_a_restart_and_clients_that_leave_give_their_places_back(held, eventually):
    pids = [each.name for each in held.observe().revisions[0].replicas]
    for generation, limit in ((2, 1), (3, 6)):
        apply(held, generation, held.revision(1, 100, model_config=HELD), limit=limit)
        with httpx.Client(base_url=held.url, trust_env=False) as client, clients(held) as send:

            def left(client=client) -> bool:
                """Send a request that gives up, and return whether it got as far as the model."""
                content = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1.0] * 4}]}
                try:
                    client.post(PATH, json=content, headers=key("a"), timeout=0.2)
                except httpx.ReadTimeout:
                    return True
                return False

            assert left()
            eventually(lambda: in_flight(held) == 0, "the gateway ended it")

            def limited(send=send, limit=limit) -> bool:
                sent = [send.begin(key("a")) for _ in range(10)]
                eventually(lambda: sum(each.done() for each in sent) + in_flight(held) == 10, "all have arrived")
                refused = [each.result() for each in sent if each.done()]
                held_back = len(sent) - len(refused)
                assert send.http(key("b"), ROWS - held_back) == 200
                assert {each.result() for each in sent if each.result() != TOO_MANY} <= {200}
                return held_back == limit

            eventually(limited, f"a limit of {limit}")
    assert [each.name for each in held.observe().revisions[0].replicas] == pids


def received(cluster: Cluster, number: int) -> list[str]:
    """Return the limits in the requests that the replicas of a revision got, each once."""
    found = set()
    revision = cluster.observe().revision(f"digits-0000{number}")
    pages = [each.metrics_url for each in revision.replicas if each.metrics_url] if revision is not None else []
    for page in pages:
        for call in json.loads(read(page.replace("/metrics", "/calls"))):
            if "x-now" in call:
                found.add((call["x-now"], call.get(HEADER, "")))
    latest = max((now for now, _ in found), default="")
    return sorted(limit for now, limit in found if now == latest)


def test_each_replica_gets_its_share_while_they_scale_and_a_canary_counts_by_itself(cluster, eventually):
    cluster.start()
    steps = iter(f"{number:03}" for number in range(1000))

    def shares(*expected: str) -> None:
        """Wait until requests, over HTTP and gRPC, carry these limits to the revisions."""

        def look() -> bool:
            now = next(steps)
            with grpc.insecure_channel(cluster.url.removeprefix("http://")) as channel:
                for _ in range(10):
                    status = cluster.request(PATH, "POST", b"", **{"x-now": now, HEADER: "7"})[0]
                    assert status in (200, 503)
                    metadata = [("fairlead-service", "default/digits"), ("x-now", now), (HEADER, "7")]
                    if status == 200:
                        channel.unary_unary(INFER)(b"", metadata=metadata, timeout=20)
            try:
                found = [received(cluster, number + 1) for number in range(len(expected))]
            except Unavailable:  # a replica that has just ended
                return False
            return found == [[each] for each in expected]

        eventually(look, f"the shares are {expected}")

    first, second = cluster.revision(1, 100), cluster.revision(2, 50)
    apply(cluster, 1, first, limit=5)
    cluster.until_ready(1)
    shares("5")
    apply(cluster, 2, replace(first, replicas=2), limit=5)
    shares("3")
    apply(cluster, 3, replace(first, replicas=2, weight_percent=50), second, limit=5)
    shares("3", "5")
    apply(cluster, 4, replace(first, weight_percent=50), second, limit=None)
    shares("", "")
    apply(cluster, 5, first, replace(second, weight_percent=0, mirror_percent=100), limit=5)
    shares("5", "")
