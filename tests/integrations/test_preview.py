"""The preview address at a real gateway: HTTP by path and host, gRPC by metadata; then the switch under traffic."""

from typing import Any
from urllib.parse import urlsplit

import grpc

from integrations.clusters.base import Desired
from tests.integrations._support.runtimes import INFER, infer_json, infer_message, until

PATH = "/serving/default/digits-preview/v2/models/digits/infer"


def _apply(cluster: Any, generation: int, first: int, second: int, preview: str) -> None:
    revisions = (cluster.revision(1, first), cluster.revision(2, second))
    cluster.driver.apply(Desired("default", "digits", generation, revisions, preview=preview))


def _by_grpc(cluster: Any) -> str:
    with grpc.insecure_channel(urlsplit(cluster.url).netloc) as channel:
        metadata = (("fairlead-service", "default/digits-preview"),)
        _, done = channel.unary_unary(INFER).with_call(infer_message(), metadata=metadata, timeout=20)
        return str(dict(done.initial_metadata())["fairlead-revision"])


def test_a_preview_and_the_switch(cluster: Any, traffic: Any) -> None:
    cluster.start()
    _apply(cluster, 1, 100, 0, "")
    cluster.until_ready(2)
    cluster.until_weights(r1=100, r2=0)
    assert cluster.request(PATH, "POST", infer_json())[0] == 404
    with traffic(cluster.url) as clients:
        clients.until_sent(20)
        _apply(cluster, 2, 100, 0, "digits-00002")
        until(lambda: cluster.observe().preview == "digits-00002", "the gateway sends the preview")
        for _ in range(5):
            status, headers, _ = cluster.request(PATH, "POST", infer_json())
            assert (status, headers["fairlead-revision"]) == (200, "digits-00002")
        status, headers, _ = cluster.request(
            "/v2/models/digits/infer", "POST", infer_json(), Host="digits-preview.default"
        )
        assert (status, headers["fairlead-revision"]) == (200, "digits-00002")
        assert _by_grpc(cluster) == "digits-00002"
        clients.until_sent(50)
        assert set(clients.by_revision()) == {"digits-00001"}, "clients see nothing of it"
        _apply(cluster, 3, 0, 100, "")
        cluster.until_weights(r1=0, r2=100)
        until(lambda: cluster.observe().preview == "", "the preview is closed")
        clients.until_sent(50)
    assert clients.failures == []
    assert clients.outcomes[-1][0] == "digits-00002"
    assert cluster.request(PATH, "POST", infer_json())[0] == 404
