"""V2 clients of the demo, one image per request: HTTP with JSON, HTTP with binary tensors, gRPC.

Only the traffic process imports this (it needs `tritonclient`). Every sender keeps one connection, used by one thread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol

import grpc
import httpx
import numpy as np
import tritonclient.http as triton_http
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

_TIMEOUT_S = 10.0
_REVISION, _REQUEST_ID = "fairlead-revision", "x-request-id"
_INPUT, _OUTPUT = "pixels", "label"


@dataclass(frozen=True, slots=True)
class Target:
    """A served model behind the gateway; the model has the service's name.

    Attributes:
        outputs: that are requested beside the label, since only those of an answer can be kept.
    """

    gateway: str
    namespace: str
    service: str
    outputs: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return all requested outputs, the label first."""
        return (_OUTPUT, *self.outputs)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response: the revision that answered (empty if none did), and the label or the error."""

    revision: str
    label: int | None
    message: str = ""


class Sender(Protocol):
    """One protocol's client."""

    def send(self, image: "np.ndarray[Any, Any]", request_id: str) -> Answer:
        """Return the answer for one image of 64 pixels; failures are returned as answers, not raised."""


class HttpJson:
    """Plain HTTP and JSON, as `curl` does."""

    def __init__(self, target: Target) -> None:
        self._url = (
            f"http://{target.gateway}/serving/{target.namespace}/{target.service}/v2/models/{target.service}/infer"
        )
        self._http = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)
        self._wanted = [{"name": name} for name in target.wanted]

    def send(self, image: "np.ndarray[Any, Any]", request_id: str) -> Answer:
        tensor = {"name": _INPUT, "datatype": "FP32", "shape": [1, 64], "data": image.tolist()}
        body = {"inputs": [tensor], "outputs": self._wanted}
        try:
            answer = self._http.post(self._url, json=body, headers={_REQUEST_ID: request_id})
        except httpx.HTTPError as error:
            return Answer("", None, f"{type(error).__name__}: {error}")
        revision = answer.headers.get(_REVISION, "")
        if answer.status_code != httpx.codes.OK:
            return Answer(revision, None, f"{answer.status_code} {answer.text[:200]}")
        return Answer(revision, int(answer.json()["outputs"][0]["data"][0]))


class _TritonClient(triton_http.InferenceServerClient):  # type: ignore[misc]  # the package has no types
    """Triton's own client; it hides the answer's headers, so this keeps the one that names the revision."""

    revision = ""

    def _post(self, *arguments: Any, **options: Any) -> Any:
        self.revision = ""
        answer = super()._post(*arguments, **options)
        self.revision = answer.get(_REVISION) or ""
        return answer


class HttpBinary:
    """Triton's HTTP client with the binary tensor extension."""

    def __init__(self, target: Target) -> None:
        self._client = _TritonClient(
            f"{target.gateway}/serving/{target.namespace}/{target.service}",
            connection_timeout=_TIMEOUT_S,
            network_timeout=_TIMEOUT_S,
        )
        self._model = target.service
        self._wanted = [triton_http.InferRequestedOutput(name, binary_data=True) for name in target.wanted]

    def send(self, image: "np.ndarray[Any, Any]", request_id: str) -> Answer:
        tensor = triton_http.InferInput(_INPUT, [1, 64], "FP32")
        tensor.set_data_from_numpy(image.reshape(1, 64), binary_data=True)
        try:
            result = self._client.infer(self._model, [tensor], outputs=self._wanted, headers={_REQUEST_ID: request_id})
        except InferenceServerException as error:
            return Answer(self._client.revision, None, f"{error.status() or ''} {error.message()}".strip()[:200])
        except (OSError, HTTPException) as error:  # a connection that ends in the middle of an answer
            return Answer("", None, f"{type(error).__name__}: {error}")
        return Answer(self._client.revision, int(result.as_numpy(_OUTPUT).reshape(-1)[0]))


class Grpc:
    """gRPC with the stubs of Triton's client, whose own call hides the initial metadata that names the revision."""

    def __init__(self, target: Target) -> None:
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(target.gateway))
        self._metadata = (("fairlead-service", f"{target.namespace}/{target.service}"),)
        self._model, self._wanted = target.service, target.wanted

    def send(self, image: "np.ndarray[Any, Any]", request_id: str) -> Answer:
        request = service_pb2.ModelInferRequest(model_name=self._model)
        request.inputs.add(name=_INPUT, datatype="FP32", shape=[1, 64])
        for name in self._wanted:
            request.outputs.add(name=name)
        request.raw_input_contents.append(image.astype("<f4").tobytes())
        metadata = (*self._metadata, (_REQUEST_ID, request_id))
        try:
            result, call = self._stub.ModelInfer.with_call(request, metadata=metadata, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            return Answer(_revision_of(error), None, f"{error.code().name} {error.details()}"[:200])
        label = np.frombuffer(result.raw_output_contents[0], "<i8") if result.raw_output_contents else None
        return Answer(
            _revision_of(call), int(label[0] if label is not None else result.outputs[0].contents.int64_contents[0])
        )


def _revision_of(call: Any) -> str:
    """Return the revision in a call's metadata; an error may come as trailers only."""
    for metadata in (call.initial_metadata(), call.trailing_metadata()):
        for key, value in metadata or ():
            if key == _REVISION:
                return str(value)
    return ""


SENDERS: dict[str, Callable[[Target], Sender]] = {"http-json": HttpJson, "http-binary": HttpBinary, "grpc": Grpc}
