"""gRPC message reuse: requests that differ only in their tensors skip protobuf.

A client that requests the same shapes sends the same bytes before its raw tensors, which end a ModelInferRequest, each
after a tag and its length. The bytes before the first tensor are the message's head; a message with a known head and
the same lengths is parsed, and its answer built, without protobuf.

    head | tag, length | tensor | tag, length | tensor ...
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from serving_runtime import proto
from serving_runtime.common.datatypes import Array, Datatype
from serving_runtime.common.request import NO_PARAMETERS, InferRequest, InferResponse, Tensor
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.protocol.grpc.codec import infer
from serving_runtime.protocol.tensors import binary

_IN, _OUT, _IN_STREAM = b"\x3a", b"\x32", b"\x12"
"""Tags of raw_input_contents, raw_output_contents and a stream's infer_response: fields 7, 6 and 2, with a length."""

_KEPT_BYTES = 4096
"""Limit of a head."""

_KEPT_OF_A_LENGTH = 8
_KEPT_LENGTHS = 256
_KEPT_ANSWERS = 64


class _Answers:
    """Beginnings of answers, by model version and shapes of the outputs: the bytes before each raw tensor.

    Args:
        encode: makes a response's message.
        tag: of the field that embeds the message; empty for a message of its own.
    """

    def __init__(self, encode: Callable[[InferResponse, SharedMemory, infer.Parts], Any], tag: bytes = b"") -> None:
        self._encode = encode
        self._tag = tag
        self._known: dict[tuple[Any, ...], tuple[bytes, ...]] = {}

    def serialized(self, response: InferResponse, memory: SharedMemory) -> bytes:
        """Return the message, serialized."""
        if response.parameters or not response.outputs:
            whole: bytes = self._encode(response, memory, infer.NO_PARTS).SerializeToString()
            return self._begin(len(whole)) + whole
        key = (response.model_version, response.final, *[output.array.shape for output in response.outputs])
        befores = self._known.get(key)
        if befores is None:
            return self._learned(key, response, memory)
        if len(befores) == 1:
            _, datatype, array = response.outputs[0]
            return b"".join((befores[0], binary.encode(array, datatype)))
        pieces: list[Any] = []
        for before, (_, datatype, array) in zip(befores, response.outputs, strict=True):
            pieces += (before, binary.encode(array, datatype))
        return b"".join(pieces)

    def _learned(self, key: tuple[Any, ...], response: InferResponse, memory: SharedMemory) -> bytes:
        message = self._encode(response, memory, infer.NO_PARTS)
        whole: bytes = message.SerializeToString()
        begin = self._begin(len(whole))
        fixed = all(datatype.size_bytes and array.size for _, datatype, array in response.outputs)
        if fixed and len(self._known) < _KEPT_ANSWERS:
            marks = [_mark(_OUT, len(raw)) for raw in message.raw_output_contents]
            del message.raw_output_contents[:]
            self._known[key] = (begin + message.SerializeToString() + marks[0], *marks[1:])
        return begin + whole

    def _begin(self, size_bytes: int) -> bytes:
        return _mark(self._tag, size_bytes) if self._tag else b""


class KnownRequest:
    """A message without its tensors, and its answers.

    Attributes:
        length: of the whole message in bytes.
    """

    __slots__ = ("_answers", "_head", "_inputs", "_marks", "_request", "_stream_answers", "length")

    def __init__(self, head: bytes, length: int, request: InferRequest, marks: list[bytes]) -> None:
        self.length = length
        self._request = request._replace(inputs=())
        self._head = head + marks[0]
        self._inputs: list[tuple[str, Datatype, tuple[int, ...], int]] = []
        self._marks: list[tuple[int, int, bytes]] = []
        at = len(head)
        for (name, datatype, array), mark in zip(request.inputs, marks, strict=True):
            self._marks.append((at, at + len(mark), mark))
            at += len(mark)
            self._inputs.append((name, datatype, array.shape, at))
            at += array.nbytes
        self._marks = self._marks[1:]  # the first one is in the head
        self._answers = _Answers(infer.encode)
        self._stream_answers = _Answers(infer.encode_within_stream, _IN_STREAM)

    def request_in(self, content: memoryview, caller: bytes = b"") -> InferRequest | None:
        """Return the request in a message of this length, its tensors as views; None where it differs."""
        head = self._head
        if content[: len(head)].tobytes() != head:
            return None
        for begin, end, mark in self._marks:
            if content[begin:end].tobytes() != mark:
                return None
        inputs = []
        for name, datatype, shape, at in self._inputs:
            array: Array = np.ndarray(shape, datatype.dtype, content, at)
            inputs.append(Tensor(name, datatype, array))
        known = self._request
        return InferRequest(
            known.model_name, known.model_version, tuple(inputs), known.outputs, "", NO_PARAMETERS, NO_PARAMETERS, None,
            caller,
        )  # fmt: skip

    def serialized(self, response: InferResponse, memory: SharedMemory) -> bytes:
        """Return the ModelInferResponse to such a request, serialized."""
        return self._answers.serialized(response, memory)

    def serialized_in_stream(self, response: InferResponse, memory: SharedMemory) -> bytes:
        """Return the ModelStreamInferResponse to such a request, serialized."""
        return self._stream_answers.serialized(response, memory)


class KnownRequests:
    """The messages that one server has received, by their lengths; bounded in number and in size."""

    def __init__(self) -> None:
        self._by_length: dict[int, list[KnownRequest]] = {}

    def clear(self) -> None:
        """Drop all: models, and with them the datatypes of their answers, may have changed."""
        self._by_length.clear()

    def find(self, content: memoryview, caller: bytes = b"") -> tuple[InferRequest, KnownRequest] | None:
        """Return the request in a serialized message, and its known form."""
        for known in self._by_length.get(len(content), ()):
            request = known.request_in(content, caller)
            if request is not None:
                return request, known
        return None

    def learn(self, content: memoryview, message: Any, request: InferRequest) -> None:
        """Keep a message that decoded to `request`, if others may differ from it only in their tensors."""
        known = _known(content, message, request)
        if known is None:
            return
        alike = self._by_length.get(known.length, [])
        if len(alike) >= _KEPT_OF_A_LENGTH or len(self._by_length) >= _KEPT_LENGTHS:
            self._by_length.clear()
        self._by_length.setdefault(known.length, []).append(known)


def _known(content: memoryview, message: Any, request: InferRequest) -> KnownRequest | None:
    """Return the known form of a message, None where it is unlikely to recur; empties the message."""
    if not _may_come_again(message, request):
        return None
    sizes = [len(raw) for raw in message.raw_input_contents]
    marks = [_mark(_IN, size) for size in sizes]
    head_bytes = at = len(content) - sum(sizes) - sum(map(len, marks))
    for mark, size in zip(marks, sizes, strict=True):
        if at < 0 or content[at : at + len(mark)].tobytes() != mark:
            return None
        at += len(mark) + size
    head = content[:head_bytes].tobytes()
    del message.raw_input_contents[:]
    if len(head) > _KEPT_BYTES or not _is_message(head, message):  # other fields between the tensors, or after them
        return None
    return KnownRequest(head, len(content), request, marks)


def _may_come_again(message: Any, request: InferRequest) -> bool:
    """Return whether probably only the tensors will change next time, and those are of fixed sizes."""
    if request.id or request.parameters or not 0 < len(message.raw_input_contents) == len(request.inputs):
        return False
    if any(part.parameters for part in (*message.inputs, *message.outputs)):
        return False
    return all(binary.is_view(array.nbytes, datatype, array.shape) for _, datatype, array in request.inputs)


def _is_message(head: bytes, message: Any) -> bool:
    try:
        return bool(proto.ModelInferRequest.FromString(head) == message)
    except DecodeError:
        return False


def _mark(tag: bytes, size_bytes: int) -> bytes:
    """Return the bytes before a value of this size in a repeated field (protobuf: base 128 varints)."""
    found = bytearray(tag)
    while size_bytes >= 128:
        found.append(size_bytes % 128 + 128)
        size_bytes //= 128
    found.append(size_bytes)
    return bytes(found)
