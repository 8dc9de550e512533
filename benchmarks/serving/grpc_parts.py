"""The way of a gRPC call before and behind the engine, part by part: real connections, and no socket under them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.serving.requests import METHOD
from benchmarks.serving.timing import least_us, least_us_each
from serving_runtime.common.request import InferResponse
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.methods import Answered, DirectMethod, Method, Reply, StreamMethod
from serving_runtime.protocol.grpc.on_http2.server import Http2GrpcServer
from serving_runtime.protocol.grpc.policy import CallPolicy
from serving_runtime.protocol.grpc.services.inference import V2Service
from serving_runtime.protocol.grpc.settings import GrpcSettings
from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.headers.blocks import encode

_CALLS = 320
"""On one connection at once, below the limit of streams."""

_FIELDS = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", METHOD.encode()),
    (b":authority", b"127.0.0.1"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
)


class _Socket(asyncio.Transport):
    """Takes all there is."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def write(self, data: Any) -> None: ...
    def writelines(self, list_of_data: Any) -> None: ...
    def get_write_buffer_size(self) -> int:
        return 0


class _Nothing:
    """Work that is under way for a call."""

    def cancel(self) -> None: ...


class _Keeps:
    """A service that keeps what it is asked, and whom it is to answer."""

    name = "inference.GRPCInferenceService"

    def __init__(self) -> None:
        self.kept: list[tuple[memoryview, Reply]] = []
        self.methods: dict[str, Method] = {"ModelInfer": self._in_a_task}
        self.direct: dict[str, DirectMethod] = {"ModelInfer": self._keep}
        self.streams: dict[str, StreamMethod] = {}

    def drain(self) -> None: ...

    async def _in_a_task(self, message: Any) -> Any:
        raise AssertionError(message)

    def _keep(self, content: memoryview, reply: Reply, _caller: bytes) -> _Nothing:
        self.kept.append((content, reply))
        return _NOTHING


_NOTHING = _Nothing()


def found(
    engine: Engine, message: bytes
) -> tuple[list[tuple[str, float]], Callable[[InferResponse], list[tuple[str, float]]]]:
    """Return the parts before the engine, and what finds those behind it.

    Args:
        message: a ModelInferRequest with its prefix.
    """
    keeps = _Keeps()
    server = Http2GrpcServer([keeps], GrpcSettings(), CallPolicy())
    connection = Connection(server)
    connection.connection_made(_Socket())
    connection.data_received(frames.PREFACE + frames.settings({}) + frames.window_update(0, 2**30))
    calls = _calls(message)

    def asked() -> list[bytes]:
        _answer_all(keeps, (b"", 1))
        return [next(calls) for _ in range(_CALLS)]

    http2 = least_us_each(asked, connection.data_received, _CALLS)
    service = V2Service(engine)
    content = memoryview(message)[5:]
    service.infer(content, lambda _answer: None).cancel()  # the first of its kind is learnt
    known = service._known.find(content)
    assert known is not None
    parts = [
        ("HTTP/2: frames, headers from the cache, the call and its message", http2),
        ("V2: known message, tensors as views", least_us(lambda: service._known.find(content))),
    ]

    def behind(response: InferResponse) -> list[tuple[str, float]]:
        serialize = known[1].serialized
        answer = serialize(response, engine.shared_memory)

        def unanswered() -> list[Reply]:
            for call in asked():
                connection.data_received(call)
            replies = [reply for _, reply in keeps.kept]
            keeps.kept.clear()
            return replies

        return [
            ("V2: known answer", least_us(lambda: serialize(response, engine.shared_memory))),
            (
                "HTTP/2: answer as frames, the end of the call",
                least_us_each(unanswered, lambda reply: reply((answer, 1)), _CALLS),
            ),
        ]

    return parts, behind


def _calls(message: bytes) -> Iterator[bytes]:
    """Yield one call after another as their bytes come."""
    block = encode(_FIELDS)
    for stream_id in range(1, frames.LAST_STREAM_ID, 2):
        headers = frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)
        yield headers + frames.frame(frames.DATA, frames.END_STREAM, stream_id, message)


def _answer_all(keeps: _Keeps, answer: Answered) -> None:
    for _, reply in keeps.kept:
        reply(answer)
    keeps.kept.clear()
