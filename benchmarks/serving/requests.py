"""What is sent to servers, and the numbers in what comes back."""

import json
import urllib.request
from dataclasses import dataclass, field

import grpc
import numpy as np
from numpy.typing import NDArray

from benchmarks.serving.models import Model
from serving_runtime.proto import ModelInferRequest, ModelInferResponse

METHOD = "/inference.GRPCInferenceService/ModelInfer"
JSON = {"Content-Type": "application/json"}
_LENGTH = "Inference-Header-Content-Length"


@dataclass(frozen=True)
class Body:
    """What is posted."""

    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


def v2_binary(model: Model) -> Body:
    """Return a V2 request with binary tensors both ways."""
    tensor = {**_tensor(model), "parameters": {"binary_data_size": model.sample.nbytes}}
    outputs = [{"name": "y", "parameters": {"binary_data": True}}]
    head = json.dumps({"inputs": [tensor], "outputs": outputs}).encode()
    headers = {_LENGTH: str(len(head)), "Content-Type": "application/octet-stream"}
    return Body(head + model.sample.tobytes(), headers)


def v2_json(model: Model) -> Body:
    """Return a V2 request in JSON alone."""
    tensor = {**_tensor(model), "data": _numbers(model)}
    return Body(json.dumps({"inputs": [tensor]}).encode(), JSON)


def plain_json(model: Model) -> Body:
    """Return {"x": [[...]]}, as servers with an interface of their own take it."""
    return Body(json.dumps({"x": np.array(_numbers(model)).reshape(model.sample.shape).tolist()}).encode(), JSON)


def v2_grpc(model: Model) -> bytes:
    """Return a ModelInferRequest with the five bytes that gRPC puts before it."""
    request = ModelInferRequest(model_name=model.name)
    request.inputs.add(**_tensor(model))
    request.raw_input_contents.append(model.sample.tobytes())
    content: bytes = request.SerializeToString()
    return b"\0" + len(content).to_bytes(4, "big") + content


def post(url: str, body: Body) -> NDArray[np.float32]:
    """Return the numbers of an answer, whichever of the forms it has."""
    request = urllib.request.Request(url, body.content, body.headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        head, content = int(response.headers.get(_LENGTH, 0)), response.read()
    if head:
        return np.frombuffer(content[head:], "f4")
    found = json.loads(content)
    if "outputs" in found:
        found = found["outputs"][0]["data"]
    return np.array(found["y"] if isinstance(found, dict) else found, "f4").ravel()


def call(port: int, model: Model) -> NDArray[np.float32]:
    """Return the numbers of an answer by gRPC; raises RuntimeError in one line where it is an error."""
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)]) as channel:
        infer = channel.unary_unary(METHOD, response_deserializer=ModelInferResponse.FromString)
        try:
            answer = infer(v2_grpc(model)[5:], timeout=120)
        except grpc.RpcError as error:
            raise RuntimeError(f"port {port} answered {error.code().name}: {error.details()}") from error
    raw = answer.raw_output_contents
    return np.frombuffer(raw[0], "f4") if raw else np.array(answer.outputs[0].contents.fp32_contents, "f4")


def _tensor(model: Model) -> dict[str, object]:
    return {"name": "x", "datatype": model.datatype, "shape": list(model.sample.shape)}


def _numbers(model: Model) -> list[float]:
    """Return the sample, rounded to what a person would write."""
    return [round(value, 4) for value in model.sample.ravel().tolist()]
