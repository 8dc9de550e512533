"""V2 inference codec over HTTP: the JSON body, and the binary tensor data extension in both directions.

Layout of a binary body: JSON of Inference-Header-Content-Length bytes, then the tensors in the order of the JSON.
A length of 0 means that the body is one tensor and nothing else: see raw_infer.py.
"""

import math
from typing import Any

import numpy as np

from serving_runtime.common.datatypes import BYTES, Array
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.request import InferRequest, InferResponse, Tensor
from serving_runtime.config.model import ModelConfig
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.codec import json_body, raw_infer
from serving_runtime.protocol.http.codec.infer_head import OutputForms
from serving_runtime.protocol.http.codec.infer_head_reuse import HeadCache
from serving_runtime.protocol.http.codec.render_response import text_chunks
from serving_runtime.protocol.http.codec.response_head import HEADERS, AnswerForm, AnswerHead
from serving_runtime.protocol.http.wire.message import JSON, Request, Response
from serving_runtime.protocol.request_memory import LARGE_REQUEST_BYTES
from serving_runtime.protocol.rows import header_line
from serving_runtime.protocol.tensors import binary as tensors
from serving_runtime.protocol.tensors import decoding, json_tensors
from serving_runtime.protocol.tensors.binary import Buffer

_KEPT_ANSWERS = 64
_IN_MEMORY = b"shared_memory_region"


class InferCodec:
    """Decodes the requests of one infer path and encodes their answers.

    Attributes:
        path: in the form of clients that escape nothing without need.
        model, version: those in the path; the version is empty without one.
    """

    def __init__(self, model: str, version: str, engine: Engine) -> None:
        self.path = f"/v2/models/{model}{f'/versions/{version}' if version else ''}/infer".encode()
        self.model = model
        self.version = version
        self._engine = engine
        self._memory: SharedMemory = engine.shared_memory
        self._heads = HeadCache()

    def is_slow(self, request: Request) -> bool:
        """Return whether to decode a request off the event loop."""
        body, start, json_length = request.body, request.body_offset, request.json_length
        size = len(body) if json_length is None else json_length
        if len(body) > decoding.SLOW_BYTES:
            if size > decoding.SLOW_BYTES:
                return True
            text = bytes(memoryview(body)[start : start + size])
            if b'"BYTES"' in text or b"\\" in text:  # or an escape, which could spell any word
                return True
        return self._memory.allowed and 0 < size <= decoding.SLOW_BYTES and self._reads_much(body[start : start + size])

    def _reads_much(self, text: Buffer) -> bool:
        """Return whether the request reads much from shared memory."""
        if _IN_MEMORY not in text and b"\\" not in text:
            return False
        try:
            head, _, _ = self._heads.head(bytes(text))
        except ServingError:  # `decode` raises it
            return False
        return tensors.copy_takes_long(sum(item.part.byte_size for item in head.inputs if item.part is not None))

    def decode(self, request: Request) -> tuple[InferRequest, AnswerForm]:
        """Return the inference request in an HTTP request, and the form of its answers.

        Raises InvalidArgument, NotFound or Unsupported.
        """
        body, start, json_length = request.body, request.body_offset, request.json_length
        end = len(body)
        position = end if json_length is None else start + json_length
        if position > end:
            raise InvalidArgument(
                f"Inference-Header-Content-Length is {json_length}, but the request body has {end - start} bytes"
            )
        if json_length == 0:
            config = self._engine.servable(self.model, self.version).config
            tensor = raw_infer.tensor(memoryview(body)[start:], config)
            return InferRequest(self.model, self.version, (tensor,), caller=request.caller), raw_infer.ANSWER
        if position - start > LARGE_REQUEST_BYTES:
            self._check_values(memoryview(body)[start:position])
        head, request_id, answer = self._heads.head(bytes(body[start:position]))
        inputs = []
        shared_bytes = 0
        for name, datatype, shape, size, data, part, is_view in head.inputs:
            array: Array
            if size is not None:
                if size > end - position:
                    left = f"only {end - position} bytes are left in the body"
                    raise InvalidArgument(f"input '{name}' has binary_data_size {size}, but {left}")
                if is_view:
                    array = np.ndarray(shape, datatype.dtype, body, position)
                else:
                    array = tensors.decode(memoryview(body)[position : position + size], datatype, shape, name)
                position += size
            elif part is not None:
                decode = tensors.decoder(datatype, shape, name)
                array = self._memory.tensor(part, decode, before_bytes=shared_bytes)
                shared_bytes += part.byte_size
            else:
                array = json_tensors.decode(data, datatype, shape, name)
            inputs.append(Tensor(name, datatype, array))
        if position != end:
            raise InvalidArgument(f"the request body has {end - position} bytes after its last tensor")
        forms = head.forms
        for part in forms.parts.values():  # before a useless run of the model
            self._memory.check(part)
        decoded = InferRequest(
            self.model, self.version, tuple(inputs), forms.names, request_id, head.parameters, forms.classes, None,
            request.caller,
        )  # fmt: skip
        return decoded, answer

    def _check_values(self, text: memoryview) -> None:
        """Raise InvalidArgument for a JSON text of more values than the model takes, before it is decoded."""
        most = most_values(self._engine.servable(self.model, self.version).config)
        if most is not None:
            json_body.check_values(text, most)

    def answer_is_slow(self, response: InferResponse, form: AnswerForm) -> bool:
        """Return whether to encode an answer off the event loop."""
        forms = form.outputs
        for name, datatype, array in response.outputs:
            if name in forms.parts and tensors.copy_takes_long(array.nbytes):
                return True
            if tensors.takes_long(array, datatype):
                as_it_is = datatype is not BYTES and forms.binary_by_name.get(name, forms.binary)
                if not as_it_is:
                    return True
        return False

    def encode(self, response: InferResponse, form: AnswerForm) -> Response:
        """Return the HTTP answer, each output in the form that the request wants.

        Raises ServingError where an output has no such form.
        """
        answers = form.heads
        if answers is None or response.parameters:
            return self._encode(response, form.outputs)[0]
        key = (response.model_version, *[output.array.shape for output in response.outputs])
        known = answers.get(key)
        if known is not None:
            return known.response(
                response.id, [tensors.encode(array, datatype) for _, datatype, array in response.outputs]
            )
        answer, always_the_same = self._encode(response, form.outputs)
        if always_the_same and len(answers) < _KEPT_ANSWERS:
            without, _ = self._encode(response._replace(id=""), form.outputs) if response.id else (answer, True)
            text = without.chunks[0]
            answers[key] = AnswerHead.of(text, without.length - len(text), response.rows)
        return answer

    def _encode(self, response: InferResponse, forms: OutputForms) -> tuple[Response, bool]:
        """Return the answer, and whether its head depends only on the shapes of the outputs."""
        outputs: list[dict[str, Any]] = []
        binary: list[Any] = []
        total = 0
        always_the_same = True
        is_long = False
        for name, datatype, array in response.outputs:
            output: dict[str, Any] = {"name": name, "datatype": datatype.name, "shape": array.shape}
            if name in forms.parts:
                # Nothing else is sent, as by Triton: its C++ client takes any parameters for those of a binary output.
                self._memory.write(forms.parts[name], tensors.encode(array, datatype))
                always_the_same = False
            elif forms.binary_by_name.get(name, forms.binary):
                raw = tensors.encode(array, datatype)
                size = memoryview(raw).nbytes
                output["parameters"] = {"binary_data_size": size}
                binary.append(raw)
                total += size
                always_the_same = always_the_same and datatype is not BYTES
            else:
                output["data"] = json_tensors.encode(array, datatype, name)
                always_the_same = False
                is_long = is_long or tensors.takes_long(array, datatype)
            outputs.append(output)
        text = _text(response, outputs, is_long=is_long)
        length = sum(map(len, text))
        if not binary:
            return Response(200, JSON + header_line(response.rows), text, length), False
        headers = HEADERS % (length, response.rows)
        return Response(200, headers, (*text, *binary), length + total), always_the_same


def _text(response: InferResponse, outputs: list[dict[str, Any]], *, is_long: bool) -> tuple[bytes, ...]:
    content: dict[str, Any] = {"model_name": response.model_name, "model_version": response.model_version}
    if response.id:
        content["id"] = response.id
    if response.parameters:
        content["parameters"] = dict(response.parameters)
    content["outputs"] = outputs
    return text_chunks(content, is_long=is_long)


def most_values(config: ModelConfig) -> int | None:
    """Return the limit of elements in all inputs of a request; None for inputs of variable dimensions."""
    total = 0
    for tensor in config.inputs:
        if any(dim < 0 for dim in tensor.dims):
            return None
        total += math.prod(tensor.dims) * max(1, config.max_batch_size)
    return total
