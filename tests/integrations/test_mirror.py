"""Copies of requests for a shadow: real Envoy, HTTP and gRPC, and shadows that hang, crash and lie."""

import json
import math
import os
import signal
import time
import urllib.request
from collections import Counter
from typing import Any

import grpc

from integrations.clusters.base import Sample
from integrations.metrics.counters import collect

MODEL = "/serving/default/digits/v2/models/digits"
GRPC_INFER = "/inference.GRPCInferenceService/ModelInfer"
DEADLINE_S = 60.0


def shadowed(cluster: Any, eventually: Any, percent: int, **env: str) -> None:
    """Bring up version 1, which serves clients, and then version 2 as its shadow."""
    if cluster.agent is None:
        cluster.start()
    cluster.apply(1, cluster.revision(1, 100))
    eventually(lambda: shares(cluster, 1) == (100, 0), "version 1 serves", DEADLINE_S)
    cluster.apply(2, cluster.revision(1, 100), cluster.revision(2, 0, env=env, mirror_percent=percent))
    eventually(lambda: shares(cluster, 2) == (0, percent), f"the gateway copies {percent} %", DEADLINE_S)


def shares(cluster: Any, number: int) -> tuple[int, int] | None:
    """Return the confirmed share of requests and of copies that a version gets; None for an unknown one."""
    there = cluster.observe().revision(f"digits-0000{number}")
    return None if there is None else (there.weight_percent, there.mirror_percent)


def calls(cluster: Any, revision: str) -> list[dict[str, str]]:
    """Return what a revision's replica was asked to infer."""
    page = cluster.observe().revision(revision).replicas[0].metrics_url
    with urllib.request.urlopen(page.replace("/metrics", "/calls"), timeout=20) as answer:
        return list(json.load(answer))


def sample(cluster: Any, source: str, revision: str = "digits-00002") -> Sample:
    return next(each for each in collect(cluster.observe()) if (each.source, each.revision) == (source, revision))


def call(cluster: Any, do: str = "") -> int:
    """Return the status of one gRPC inference."""
    metadata = (("fairlead-service", "default/digits"), ("x-do", do))
    with grpc.insecure_channel(cluster.url.removeprefix("http://")) as channel:
        try:
            channel.unary_unary(GRPC_INFER)(b"", metadata=metadata, timeout=20)
        except grpc.RpcError as error:
            return int(error.code().value[0])
    return 0


def test_share_is_honoured_over_http_and_grpc_and_no_client_sees_a_shadow(cluster, traffic, eventually):
    shadowed(cluster, eventually, 20)
    with traffic(cluster.url, pause_s=0) as clients:
        clients.until_sent(4000, DEADLINE_S)
    assert clients.failures == []
    assert set(clients.by_revision()) == {"digits-00001"}
    eventually(
        lambda: sample(cluster, "mirror").requests == len(calls(cluster, "digits-00002")),
        "every copy was counted",
        DEADLINE_S,
    )
    sent, copied = calls(cluster, "digits-00001"), calls(cluster, "digits-00002")
    for protocol, total in Counter(each["protocol"] for each in sent).items():
        expected = 0.2 * total
        found = sum(each["protocol"] == protocol for each in copied)
        assert abs(found - expected) < 5 * math.sqrt(expected * 0.8), f"{found} of {total} over {protocol}"
    ids = {each["x-request-id"] for each in sent}
    assert {each["x-request-id"] for each in copied} <= ids, "both sides have the same request id"
    assert "fairlead-shadow" not in {name for each in copied for name in each}
    assert sample(cluster, "gateway").requests == 0, "copies are nothing that clients saw"
    assert sample(cluster, "gateway", "digits-00001").requests == len(sent)


def test_only_infer_calls_that_name_no_version_are_copied(cluster, eventually):
    shadowed(cluster, eventually, 100)
    for path in ("", "/ready", "/versions/1", "/versions/1/ready"):
        assert cluster.request(MODEL + path)[0] == 200
    assert cluster.request(f"{MODEL}/versions/1/infer", "POST", b"{}")[0] == 200
    assert cluster.request(f"{MODEL}/infer", "POST", b"{}", host="x")[1]["fairlead-revision"] == "digits-00001"
    assert cluster.request("/v2/models/digits/infer", "POST", b"{}", host="digits.default")[0] == 200
    eventually(lambda: sample(cluster, "mirror").requests == 2, "both copies arrived", DEADLINE_S)
    copied = calls(cluster, "digits-00002")
    assert [(each["path"], each["host"]) for each in copied] == [
        ("/v2/models/digits/infer", "x"),
        ("/v2/models/digits/infer", "digits.default"),
    ]
    _, headers, _ = cluster.request(f"{MODEL}/versions/2/infer", "POST", b"{}")
    assert headers["fairlead-revision"] == "digits-00002", "who asks for version 2 by its path is no shadow's client"
    assert (sample(cluster, "gateway").requests, sample(cluster, "mirror").requests) == (1, 2)


def test_a_shadows_errors_are_counted_as_clients_would_have_seen_them(cluster, eventually):
    shadowed(cluster, eventually, 100)
    for do in ("", "status=400", "status=500", "status=503"):
        cluster.request(f"{MODEL}/infer", "POST", b"{}", x_do=do)
    assert [call(cluster, do) for do in ("", "status=3", "status=13", "status=14")] == [0, 3, 13, 14]
    eventually(lambda: sample(cluster, "mirror").requests == 8, "every copy was counted", DEADLINE_S)
    found = sample(cluster, "mirror")
    assert (found.client_errors, found.server_errors) == (2, 4)
    assert sample(cluster, "gateway").requests == 0


def test_a_shadow_that_hangs_is_not_felt_and_is_found_out(cluster, traffic, eventually):
    shadowed(cluster, eventually, 100, MODEL_DO="sleep=3600")
    with traffic(cluster.url, pause_s=0) as clients:
        clients.until_sent(1000, DEADLINE_S)
        eventually(lambda: sample(cluster, "mirror").server_errors > 100, "copies over the limit fail", DEADLINE_S)
        begun = time.monotonic()
        clients.until_sent(200, DEADLINE_S)
        assert time.monotonic() - begun < DEADLINE_S
    assert clients.failures == []
    assert set(clients.by_revision()) == {"digits-00001"}


def test_a_shadow_whose_process_stands_still_is_not_felt(cluster, traffic, eventually):
    cluster.start(probe_failures=10_000)
    shadowed(cluster, eventually, 100)
    shadow = cluster.pid("default.digits-00002-0")
    os.kill(shadow, signal.SIGSTOP)
    try:
        with traffic(cluster.url, pause_s=0) as clients:
            clients.until_sent(500, DEADLINE_S)
            large = bytes(8 << 20)
            assert [cluster.request(f"{MODEL}/infer", "POST", large)[0] for _ in range(3)] == [200] * 3
            clients.until_sent(200, DEADLINE_S)
    finally:
        os.kill(shadow, signal.SIGCONT)
    assert clients.failures == []


def test_a_shadow_that_crashes_on_every_copy_is_not_felt(cluster, traffic, eventually):
    shadowed(cluster, eventually, 100, MODEL_DO="crash")
    with traffic(cluster.url, pause_s=0) as clients:
        eventually(
            lambda: cluster.observe().revision("digits-00002").replicas[0].restarts >= 2,
            "the shadow crashed again and again",
            DEADLINE_S,
        )
        clients.until_sent(200, DEADLINE_S)
    assert clients.failures == []
    assert set(clients.by_revision()) == {"digits-00001"}


def test_large_bodies_are_copied_whole(cluster, eventually):
    shadowed(cluster, eventually, 100)
    size = 4 << 20
    assert cluster.request(f"{MODEL}/infer", "POST", bytes(size))[0] == 200
    eventually(lambda: sample(cluster, "mirror").requests == 1, "the copy arrived", DEADLINE_S)
    assert sample(cluster, "mirror").server_errors == 0


def test_mirroring_ends_without_a_trace(cluster, traffic, eventually):
    shadowed(cluster, eventually, 50)
    with traffic(cluster.url, pause_s=0) as clients:
        clients.until_sent(200, DEADLINE_S)
        cluster.apply(3, cluster.revision(1, 100), cluster.revision(2, 0))
        eventually(lambda: shares(cluster, 2) == (0, 0), "nothing is copied any more", DEADLINE_S)
        eventually(lambda: sample(cluster, "mirror").requests > 0, "its counters stay", DEADLINE_S)
        cluster.apply(4, cluster.revision(1, 100))
        cluster.until_weights(r1=100)
        clients.until_sent(200, DEADLINE_S)
    assert clients.failures == []
