"""Answers name the rows of their requests: over HTTP in a header, over gRPC in the trailers."""

import json
from pathlib import Path

import grpc
import httpx
import pytest
from onnx import TensorProto

from serving_runtime.proto import message
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

HEADER = "fairlead-rows"
SERVICE = "/inference.GRPCInferenceService"


def asked(model: str, rows: int, width: int = 8, *, binary: bool, request_id: str = "") -> httpx.Request:
    """Return an infer request, its one tensor in JSON or behind it."""
    tensor: dict[str, object] = {"name": "x", "datatype": "FP32", "shape": [rows, width]}
    content: dict[str, object] = {"id": request_id} if request_id else {}
    if not binary:
        content["inputs"] = [{**tensor, "data": [1.0] * (rows * width)}]
        return httpx.Request("POST", f"http://x/v2/models/{model}/infer", json=content)
    content["inputs"] = [{**tensor, "parameters": {"binary_data_size": 4 * rows * width}}]
    head = json.dumps({**content, "parameters": {"binary_data_output": True}}, separators=(",", ":")).encode()
    headers = {"inference-header-content-length": str(len(head))}
    url = f"http://x/v2/models/{model}/infer"
    return httpx.Request("POST", url, content=head + bytes(4 * rows * width), headers=headers)


def rows_of(server: ServerProcess, request: httpx.Request) -> list[str]:
    sent = dict(request.headers) | {"host": "x"}
    answer = httpx.post(server.url + request.url.path, content=request.read(), headers=sent)
    assert answer.status_code == 200, answer.text
    return answer.headers.get_list(HEADER)


@pytest.mark.parametrize("binary", [True, False])
def test_an_answer_over_http_has_the_rows_also_where_its_head_is_reused(shared: ServerProcess, binary: bool) -> None:
    for rows in (1, 5, 5, 3, 5):
        assert rows_of(shared, asked("mlp", rows, binary=binary)) == [str(rows)]
        assert rows_of(shared, asked("mlp", rows, binary=binary, request_id="r")) == [str(rows)]


def test_a_model_that_does_not_batch_has_one_row(tmp_path: Path) -> None:
    path = onnx_models.configure(tmp_path / "models" / "plain", "max_batch_size: 0") / "1" / "model.onnx"
    onnx_models.identity(path, TensorProto.FLOAT, (4, 2))
    with server(tmp_path / "models", scratch=tmp_path) as running:
        assert rows_of(running, asked("plain", 4, 2, binary=True)) == ["1"]


def test_answers_from_the_cache_and_of_ensembles_have_rows(shared: ServerProcess) -> None:
    for _ in range(2):
        assert rows_of(shared, asked("cached", 3, binary=True)) == ["3"]
    assert rows_of(shared, asked("twice", 2, 2, binary=False)) == ["2"]


def test_v1_answers_have_rows_and_errors_do_not(shared: ServerProcess) -> None:
    url = f"{shared.url}/v1/models/mlp:predict"
    answer = httpx.post(url, json={"instances": [[0.0] * 8] * 6})
    assert (answer.status_code, answer.headers[HEADER]) == (200, "6")
    refused = httpx.post(url, json={"instances": [[0.0] * 8] * 60})
    assert refused.status_code == 400
    assert HEADER not in refused.headers


def test_calls_over_grpc_end_with_the_rows(shared: ServerProcess) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{shared.grpc}") as channel:
        infer = channel.unary_unary(f"{SERVICE}/ModelInfer")
        for rows in (1, 5, 5):
            _, call = infer.with_call(_infer(rows), timeout=20)
            assert (HEADER, str(rows)) in call.trailing_metadata()
        _, packed = infer.with_call(_infer(7), timeout=20, compression=grpc.Compression.Gzip)  # has a task of its own
        assert (HEADER, "7") in packed.trailing_metadata()
        _, live = channel.unary_unary(f"{SERVICE}/ServerLive").with_call(b"", timeout=20)
        assert HEADER not in dict(live.trailing_metadata())


def test_a_stream_ends_with_the_rows_of_its_answered_requests(shared: ServerProcess) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{shared.grpc}") as channel:
        sent = [_infer(2), _infer(60), _infer(3)]  # the second has more rows than the model takes
        stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")(iter(sent), timeout=20)
        assert len(list(stream)) == 3
        assert (HEADER, "5") in stream.trailing_metadata()


def _infer(rows: int) -> bytes:
    request = message("inference.ModelInferRequest")(model_name="mlp")
    request.inputs.add(name="x", datatype="FP32", shape=[rows, 8])
    request.raw_input_contents.append(bytes(32 * rows))
    return bytes(request.SerializeToString())
