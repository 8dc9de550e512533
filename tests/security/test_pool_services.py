"""Attacks on services in a model pool: clients that name another service's model, which the same replica has."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import grpc
import pytest

from integrations.clusters.base import Access, Desired, DesiredRevision
from serving_runtime.proto import ModelInferRequest, ModelInferResponse
from tests.integrations._support.runtimes import RUNTIME, Cluster, infer_json, infer_message, until

POOL = "default/warm"
INFER = "/inference.GRPCInferenceService/ModelInfer"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A pool of one replica with `open`, which everybody may call, and `closed`, which needs a key."""
    found = Cluster(tmp_path_factory.mktemp("pools"))
    try:
        found.start(runtime=RUNTIME, start_s=60)
        pool = DesiredRevision("warm-00001", "warm", "1", "", "", 1, 100, is_pool=True)
        found.driver.apply(Desired("default", "warm", 1, (pool,)))
        found.apply_to("open", 1, found.revision(2, 100, pool=POOL))
        found.apply_to("closed", 1, found.revision(3, 100, pool=POOL), access=Access())
        until(lambda: ask(found, "open") == (200, [2, 4, 6, 8]), "the open one answers")
        until(lambda: ask(found, "closed")[0] == 401, "the closed one is routed")
        yield found
    finally:
        found.close()


def ask(cluster: Cluster, service: str, model: str = "", **headers: str) -> tuple[int, Any]:
    path = f"/serving/default/{service}/v2/models/{model or service}/infer"
    status, _, body = cluster.request(path, "POST", infer_json(), content_type="application/json", **headers)
    return status, json.loads(body)["outputs"][0]["data"] if status == 200 else body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"fairlead_service": "default/closed"}, 401),  # it names the service, as over gRPC, and so who may call it
        ({"fairlead_service": "/serving/default/closed/v2"}, 404),
        ({"fairlead_service": "default/closed", "fairlead_model_version": "3"}, 401),
        ({"fairlead_model_version": "3"}, 200),
        ({"Fairlead-Model-Version": "3, 2"}, 200),
    ],
)
def test_headers_of_a_client_choose_no_model(cluster: Cluster, headers: dict[str, str], status: int) -> None:
    answered, said = ask(cluster, "open", **headers)
    assert answered == status
    assert status != 200 or said == [2, 4, 6, 8]


@pytest.mark.parametrize(
    "model",
    [
        "closed",
        "default.closed",
        "default.closed@3",
        quote("default/closed", safe=""),
        "open/versions/3",
        "..%2fclosed",
    ],
)
def test_paths_of_a_service_reach_no_other_model(cluster: Cluster, model: str) -> None:
    status, said = ask(cluster, "open", model)
    assert status in (400, 404), said


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ((("fairlead-service", "default/open"), ("fairlead-model-version", "3")), None),
        ((("fairlead-service", "default/closed"),), grpc.StatusCode.UNAUTHENTICATED),
        ((("fairlead-service", "default/closed/../open"),), grpc.StatusCode.UNAUTHENTICATED),
    ],
)
def test_metadata_of_a_client_reaches_no_other_model(
    cluster: Cluster, metadata: tuple[tuple[str, str], ...], code: grpc.StatusCode | None
) -> None:
    with grpc.insecure_channel(cluster.url.removeprefix("http://")) as channel:
        call = channel.unary_unary(INFER, None, ModelInferResponse.FromString)
        asked = ModelInferRequest.FromString(infer_message())
        asked.model_name = "open"
        message = asked.SerializeToString()
        if code is None:
            answer = call(message, metadata=metadata, timeout=20)
            assert (answer.model_name, answer.model_version) == ("open", "2")
            return
        with pytest.raises(grpc.RpcError) as refused:
            call(message, metadata=metadata, timeout=20)
        assert refused.value.code() is code
