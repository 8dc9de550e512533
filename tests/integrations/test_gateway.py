"""What clients get from the gateway, over HTTP and gRPC, and what it counts: real Envoy, replicas that do as asked."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import grpc
import pytest

from common.errors import Unavailable
from integrations.clusters.base import Sample
from integrations.metrics.counters import collect
from integrations.metrics.pages import read
from tests.integrations._support.control_calls import CLOSED_METHODS, CLOSED_PATHS

SERVING = "/serving/default/digits"
INFER = f"{SERVING}/v2/models/digits/infer"
V2 = "/inference.GRPCInferenceService"
ONLY = "lets through infer calls and what only reads"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, make_cluster: Any) -> Iterator[Any]:
    """Versions 1 (all requests) and 2 (none), and a service that never gets ready."""
    cluster = make_cluster(tmp_path_factory.mktemp("gateway"))
    try:
        cluster.start()
        cluster.apply(1, cluster.revision(1, 100), cluster.revision(2, 0))
        cluster.apply_to("empty", 1, cluster.revision(3, 100, env={"MODEL_START": "never-ready"}))
        cluster.until_ready(2)
        cluster.until_weights(r1=100, r2=0)
        cluster.until_known("empty")
        yield cluster
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("method", "path", "host", "status", "said"),
    [
        pytest.param("GET", f"{SERVING}/v2", "x", 200, "/v2", id="server metadata"),
        pytest.param("GET", f"{SERVING}/v2/health/live", "x", 200, "/v2/health/live", id="live"),
        pytest.param("HEAD", f"{SERVING}/v2/health/ready", "x", 200, "", id="ready, asked by HEAD"),
        pytest.param("GET", f"{SERVING}/v2/models/digits", "x", 200, "/v2/models/digits", id="model metadata"),
        pytest.param("GET", f"{SERVING}/v2/models/digits/ready?a=b", "x", 200, "/ready?a=b", id="a query is kept"),
        pytest.param("POST", INFER, "x", 200, "/v2/models/digits/infer", id="infer"),
        pytest.param(
            "POST",
            f"{SERVING}/v2//models/./digits/infer",
            "x",
            200,
            "digits/infer",
            id="a crooked path is put straight",
        ),
        *(
            pytest.param("POST", f"{SERVING}{path}", "x", 200, path, id=path)
            for path in (
                "/v2/models/digits/generate",
                "/v2/models/digits/versions/1/generate_stream",
                "/v1/models/digits:predict",
                "/v1/models/digits/versions/2:predict",
            )
        ),
        pytest.param("GET", f"{SERVING}/v1/models/digits", "x", 200, "/v1/models/digits", id="V1 model"),
        pytest.param("POST", "/v2/models/digits/infer", "digits.default", 200, "digits/infer", id="by host"),
        pytest.param(
            "POST", "/v2/models/digits/infer", "digits.default.svc.local:8090", 200, "digits/infer", id="by long host"
        ),
        pytest.param(
            "POST", f"{SERVING}/v2/models/digits/versions/2/infer", "x", 200, '"version": "2"', id="by version"
        ),
        pytest.param(
            "GET",
            f"{SERVING}/v2/models/digits/versions/9",
            "x",
            404,
            "it serves the versions 1, 2",
            id="no such version",
        ),
        pytest.param("GET", f"{SERVING}/v2/models/cats", "x", 404, "its model is at", id="another model's name"),
        *(
            pytest.param("GET", f"{SERVING}{path}", "x", 200, path, id=f"GET {path}")
            for path in (
                "/v2/models/digits/config",
                "/v2/models/digits/stats",
                "/v2/models/stats",
                "/v2/models/digits/versions/1/config",
                "/v2/models/digits/versions/2/stats",
            )
        ),
        pytest.param("GET", "/v2/models/digits/config", "digits.default", 200, "/config", id="configuration by host"),
        *(
            pytest.param(method, f"{SERVING}{path}", "x", 404, "", id=f"{method} {path} is closed")
            for method, path in CLOSED_PATHS
        ),
        pytest.param("GET", f"{SERVING}/metrics", "x", 404, ONLY, id="the replica's metrics page"),
        pytest.param("GET", INFER, "x", 405, "takes POST only", id="infer by GET"),
        pytest.param(
            "PUT", f"{SERVING}/v1/models/digits/versions/2:predict", "x", 405, "POST only", id="predict by PUT"
        ),
        pytest.param(
            "GET", f"{SERVING}x/v2", "x", 404, "no service of that name", id="a longer name is another service"
        ),
        pytest.param("GET", "/serving/default/nobody/v2", "x", 404, "no service of that name", id="unknown service"),
        pytest.param(
            "GET",
            f"{SERVING}/../nobody/v2",
            "x",
            404,
            "no service of that name",
            id="dots do not lead past the service",
        ),
        pytest.param("GET", f"{SERVING}/%2e%2e%2f", "x", 400, "", id="hidden slashes are refused"),
        pytest.param("GET", "/", "x", 404, "no service is named", id="nothing named"),
        pytest.param(
            "POST", INFER.replace("digits", "empty"), "x", 503, "service default/empty is starting", id="nothing ready"
        ),
        pytest.param(
            "GET", "/serving/default/empty/v2/health/ready", "x", 503, "is starting", id="health of what is not ready"
        ),
    ],
)
def test_http(gateway, method, path, host, status, said):
    found, headers, body = gateway.request(path, method, b"{}" if method == "POST" else None, host=host)
    assert (found, said in body.decode()) == (status, True), body
    assert headers.get("x-request-id") or status == 400
    if status == 200:
        assert headers["fairlead-revision"] == ("digits-00002" if "versions/2" in path else "digits-00001")
    else:
        assert headers["content-type"] == "application/json"
        assert set(json.loads(body)) == {"error"}


@pytest.mark.parametrize(
    ("call", "metadata", "authority", "code", "said"),
    [
        pytest.param(
            f"{V2}/ModelInfer", {"fairlead-service": "default/digits"}, "", 0, "digits-00001", id="by metadata"
        ),
        pytest.param(f"{V2}/ModelInfer", {}, "digits.default.svc", 0, "digits-00001", id="by authority"),
        *(
            pytest.param(f"{V2}/{name}", {}, "digits.default", 0, "digits-00001", id=name)
            for name in (
                "ModelStreamInfer",
                "ServerLive",
                "ServerReady",
                "ServerMetadata",
                "ModelReady",
                "ModelMetadata",
                "ModelConfig",
                "ModelStatistics",
            )
        ),
        pytest.param("/grpc.health.v1.Health/Check", {}, "digits.default", 0, "digits-00001", id="standard health"),
        *(
            pytest.param(f"{V2}/{name}", {}, "digits.default", 12, ONLY, id=f"{name} is closed")
            for name in CLOSED_METHODS
        ),
        pytest.param(
            f"{V2}/ModelInfer", {"fairlead-service": "default/x"}, "", 5, "no service of the name", id="unknown service"
        ),
        pytest.param(f"{V2}/ModelInfer", {}, "", 5, "name it by metadata", id="nothing named"),
        pytest.param(
            f"{V2}/ModelInfer", {}, "empty.default", 14, "service default/empty is starting", id="nothing ready"
        ),
    ],
)
def test_grpc(gateway, call, metadata, authority, code, said):
    options = [("grpc.default_authority", authority)] if authority else []
    with grpc.insecure_channel(gateway.url.removeprefix("http://"), options=options) as channel:
        try:
            _, done = channel.unary_unary(call).with_call(b"", metadata=tuple(metadata.items()), timeout=20)
            found, text = 0, dict(done.initial_metadata())["fairlead-revision"]
        except grpc.RpcError as error:
            found, text = error.code().value[0], error.details()
    assert (found, said in text) == (code, True), text


def test_clients_keep_their_request_id_but_change_no_timeout(gateway):
    headers = {"x_request_id": "mine", "x_envoy_upstream_rq_timeout_ms": "1", "x_do": "sleep=0.05"}
    status, answered, body = gateway.request(INFER, "POST", b"{}", **headers)
    assert (status, answered["x-request-id"], json.loads(body)["headers"]["x-request-id"]) == (200, "mine", "mine")


def test_large_bodies_pass(gateway):
    large = bytes(64 << 20)
    assert gateway.request(INFER, "POST", large)[0] == 200
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(gateway.url.removeprefix("http://"), options=options) as channel:
        answer = channel.unary_unary(f"{V2}/ModelInfer")(
            large, metadata=(("fairlead-service", "default/digits"),), timeout=60
        )
    assert len(answer) == len(large)


def sample(gateway, source: str) -> Sample:
    return next(
        each for each in collect(gateway.observe()) if each.source == source and each.revision == "digits-00001"
    )


def test_gateway_counts_what_clients_saw_of_infer_and_nothing_else(gateway):
    before = sample(gateway, "gateway")
    for do in ("", "", "status=400", "status=404", "status=500", "status=503"):
        gateway.request(INFER, "POST", b"{}", x_do=do)
    for path in (f"{SERVING}/v2/models/digits/versions/9/infer", f"{SERVING}/v2", f"{SERVING}/v2/health/ready"):
        gateway.request(path)
    with grpc.insecure_channel(gateway.url.removeprefix("http://")) as channel:
        for do in ("", "status=3", "status=5", "status=1", "status=14", "status=13", "status=4"):
            metadata = (("fairlead-service", "default/digits"), ("x-do", do))
            try:
                channel.unary_unary(f"{V2}/ModelInfer")(b"", metadata=metadata, timeout=20)
            except grpc.RpcError as error:
                assert do == f"status={error.code().value[0]}"  # noqa: PT017 - the success has no error to look at
        channel.unary_unary(f"{V2}/ModelReady")(b"", metadata=metadata[:1], timeout=20)
    after = sample(gateway, "gateway")
    assert after.started_at == before.started_at
    assert after.requests - before.requests == 6 + 7
    assert after.client_errors - before.client_errors == 2 + 3  # HTTP 400, 404; gRPC 3, 5, 1
    assert after.server_errors - before.server_errors == 2 + 3  # HTTP 500, 503; gRPC 14, 13, 4


def test_replica_counts_its_own(gateway):
    name = "digits-00001-0"
    before = sample(gateway, name)
    for do in ("", "status=500"):
        gateway.request(INFER, "POST", b"{}", x_do=do)
    after = sample(gateway, name)
    assert (after.requests - before.requests, after.server_errors - before.server_errors) == (2, 1)
    assert sum(after.latency_counts) - sum(before.latency_counts) == 2
    assert after.latency_edges_us == (1000.0,)


def test_source_that_cannot_be_read_is_no_half_answer(gateway):
    observed = gateway.observe()
    assert "fairlead_started_at" in read(observed.gateway_stats_url)
    gone = observed.gateway_stats_url.replace("admin.sock", "gone.sock")
    with pytest.raises(Unavailable, match="cannot be read"):
        collect(replace(observed, gateway_stats_url=gone))
