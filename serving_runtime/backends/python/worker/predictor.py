"""Predictor client of a transformer: V2 over HTTP, tensors as binary data (V2: binary tensor data extension).

Its address and model come from KServe's variables: PREDICTOR_HOST and MODEL_NAME.
"""

import http.client
import json
import os
from collections.abc import Mapping

import numpy as np

from serving_runtime.backends.python.worker.messages import TritonError
from serving_runtime.backends.python.worker.tensors import deserialize_bytes_tensor, serialize_byte_tensor
from serving_runtime.common.datatypes import BF16, BYTES, DATATYPES, Array, Datatype

_TIMEOUT_S = 300.0
_CODES = {404: TritonError.NOT_FOUND, 501: TritonError.UNSUPPORTED, 503: TritonError.UNAVAILABLE}
_BY_DTYPE = {datatype.dtype: datatype for datatype in DATATYPES.values() if datatype is not BF16}


class PredictorError(Exception):
    """The predictor did not respond, or refused; `code` is one of TritonError's."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Predictor:
    """A model on another server; used by one thread.

    Args:
        host: HOST:PORT of its HTTP endpoint.
    """

    def __init__(self, host: str, model: str) -> None:
        self._where = f"the predictor at {host}"
        self._path = f"/v2/models/{model}/infer"
        self._connection = http.client.HTTPConnection(host, timeout=_TIMEOUT_S)

    @classmethod
    def of_environment(cls) -> "Predictor | None":
        """Return the predictor that the environment names, if any."""
        host, model = os.environ.get("PREDICTOR_HOST", ""), os.environ.get("MODEL_NAME", "")
        return cls(host, model) if host and model else None

    def ask(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the predictor's outputs; raises PredictorError."""
        heads, parts = [], []
        for name, given in inputs.items():
            array = np.asarray(given)
            datatype = _datatype_of(name, array)
            part = _encoded(array, datatype)
            size = {"binary_data_size": len(part)}
            heads.append({"name": name, "shape": array.shape, "datatype": datatype.name, "parameters": size})
            parts.append(part)
        head = json.dumps({"inputs": heads, "parameters": {"binary_data_output": True}}).encode()
        return self._answered(b"".join([head, *parts]), len(head))

    def _answered(self, body: bytes, head_length: int) -> dict[str, Array]:
        headers = {"inference-header-content-length": str(head_length), "content-type": "application/octet-stream"}
        try:
            answer = self._sent(body, headers)
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise PredictorError(f"{self._where} does not answer: {error}", TritonError.UNAVAILABLE) from error
        if answer.status != 200:
            code = _CODES.get(answer.status, TritonError.INVALID_ARG if answer.status < 500 else TritonError.INTERNAL)
            raise PredictorError(_complaint(content) or f"{self._where} answered {answer.status}", code)
        return _decoded(content, int(answer.headers.get("inference-header-content-length", len(content))))

    def _sent(self, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """Send it; reconnects where an idle connection was closed meanwhile."""
        try:
            self._connection.request("POST", self._path, body, headers)
            return self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()
            self._connection.request("POST", self._path, body, headers)
            return self._connection.getresponse()


def _datatype_of(name: str, array: Array) -> Datatype:
    found = BYTES if array.dtype.kind in "OSU" else _BY_DTYPE.get(array.dtype)
    if found is None:
        raise TypeError(f"input '{name}' of the predictor is of dtype {array.dtype}, which V2 has not")
    return found


def _encoded(array: Array, datatype: Datatype) -> bytes:
    if datatype is not BYTES:
        return np.ascontiguousarray(array).tobytes()
    packed = serialize_byte_tensor(array.astype(object))
    return b"" if packed is None or not packed.size else bytes(packed.item())


def _decoded(content: bytes, head_length: int) -> dict[str, Array]:
    outputs, position = {}, head_length
    for output in json.loads(content[:head_length])["outputs"]:
        datatype = DATATYPES[output["datatype"]]
        part = content[position : position + output["parameters"]["binary_data_size"]]
        position += len(part)
        array = deserialize_bytes_tensor(part) if datatype is BYTES else np.frombuffer(part, datatype.dtype)
        outputs[output["name"]] = array.reshape(output["shape"])
    return outputs


def _complaint(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, LookupError, TypeError):
        return ""
