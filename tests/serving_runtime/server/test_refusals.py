"""What is refused before the model is asked is counted as a failure of the model that it names, by every protocol."""

from typing import Any

import grpc
import httpx
import pytest

from serving_runtime import proto
from tests.serving_runtime._support.processes import ServerProcess

SHORT = {"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0.5] * 7}
ONES = {**SHORT, "data": [1.0] * 8}
BINARY = {**{key: SHORT[key] for key in ("name", "datatype", "shape")}, "parameters": {"binary_data_size": 32}}


def failures(process: ServerProcess, model: str = "mlp") -> tuple[float, int]:
    """Return what the metrics page and the statistics count."""
    (stats,) = httpx.get(f"{process.url}/v2/models/{model}/stats").json()["model_stats"]
    reason = process.metric("nv_inference_request_failure", model=model, reason="OTHER")
    return reason, stats["inference_stats"]["fail"]["count"]


def expect_one_more(process: ServerProcess, before: tuple[float, int]) -> None:
    assert failures(process) == (before[0] + 1, before[1] + 1)
    assert process.metric("fairlead_inflight_requests", model="mlp") == 0


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param("/v2/models/mlp/infer", {"inputs": [SHORT]}, id="data that do not fit their shape"),
        pytest.param("/v2/models/mlp/versions/1/infer", {"inputs": []}, id="no inputs, of a version"),
        pytest.param("/v2/models/mlp/infer", {"inputs": [BINARY]}, id="binary data that are not there"),
        pytest.param("/v2/models/mlp/infer_stream", {"inputs": [SHORT]}, id="events"),
        pytest.param("/v2/models/mlp/generate", {"x": ["no number"]}, id="generate"),
        pytest.param("/v1/models/mlp:predict", {"instances": [["no number"]]}, id="V1's predict"),
        pytest.param("/v1/models/mlp:explain", {"instances": [[0.5] * 8]}, id="V1's explain, which it has not"),
        pytest.param(
            "/v2/models/mlp/infer",
            {"inputs": [ONES], "outputs": [{"name": "absent", "parameters": {"classification": 1}}]},
            id="classes of an output that there is not",
        ),
    ],
)
def test_over_http(shared: ServerProcess, path: str, content: dict[str, Any]) -> None:
    before = failures(shared)
    assert httpx.post(f"{shared.url}{path}", json=content).status_code in (400, 501)
    expect_one_more(shared, before)


def message() -> bytes:
    request = proto.message("inference.ModelInferRequest")(model_name="mlp")
    request.inputs.add(name="x", datatype="FP32", shape=[1, 8])
    request.raw_input_contents.append(bytes(28))
    content: bytes = request.SerializeToString()
    return content


def test_over_grpc(shared: ServerProcess) -> None:
    before = failures(shared)
    with grpc.insecure_channel(f"127.0.0.1:{shared.grpc}") as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
            infer(message(), timeout=60)
    expect_one_more(shared, before)


def test_in_a_stream_over_grpc(shared: ServerProcess) -> None:
    before = failures(shared)
    with grpc.insecure_channel(f"127.0.0.1:{shared.grpc}") as channel:
        stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        (answer,) = stream(iter([message()]), timeout=60)
    assert b"x" in answer
    expect_one_more(shared, before)


def test_of_a_model_that_is_not_there_nothing_is_counted(shared: ServerProcess) -> None:
    before = shared.metric("nv_inference_request_failure")
    answer = httpx.post(f"{shared.url}/v2/models/absent/infer", json={"inputs": [SHORT]})
    assert answer.status_code in (400, 404)
    assert shared.metric("nv_inference_request_failure") == before
