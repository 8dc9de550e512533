"""What is fuzzed: one function per way in, from any bytes to nothing, which raises only what would be a defect.

A target holds a real engine with real models. ServingError and ModelError are how the runtime refuses; anything else
that comes out, an answer with status 500, an error in the log, an event loop that complains: these are findings.
"""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

from google.protobuf.message import DecodeError
from onnx import TensorProto

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.common.statuses import http_status
from serving_runtime.config import text
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.support import refuse_unsupported
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.proto import ModelInferRequest
from serving_runtime.protocol.grpc.on_http2.server import Http2GrpcServer
from serving_runtime.protocol.grpc.policy import CallPolicy
from serving_runtime.protocol.grpc.services.inference import V2Service
from serving_runtime.protocol.grpc.settings import GrpcSettings
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.protocol.http.wire.connection import Connection
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.connection import Connection as Http2Connection
from serving_runtime.protocol.tensors import binary as tensors
from tests.serving_runtime import onnx_models
from tests.serving_runtime.fuzz.finding import FindingError

Target: TypeAlias = Callable[[bytes], None]

_MAX_BODY_BYTES = 1 << 20
_ANSWER_S = 10.0

_PLAIN_CALLS = ("generate", "generate_stream", "infer_stream")


class _MemoryTransport(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        pass

    def close(self) -> None:
        self.closing = True

    abort = close

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        return 0


class _Tripwire(logging.Handler):
    """Turns what the runtime logs as an error into a finding."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.record: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.record = self.record or record

    def check(self) -> None:
        record, self.record = self.record, None
        if record is not None:
            cause = record.exc_info[1] if record.exc_info else None
            raise FindingError(record.getMessage()) from cause


async def runtime(folder: Path) -> "Runtime":
    """Return a runtime of small models, which are made in the folder."""
    onnx_models.mlp(
        onnx_models.configure(folder / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx"
    )
    for name, kind in (("text", TensorProto.STRING), ("int8", TensorProto.INT8)):
        onnx_models.identity(folder / name / "1" / "model.onnx", kind, ("N", 2))
    engine = Engine([folder], LoadSettings())
    failed = await engine.load_all()
    assert not failed, failed
    return Runtime(engine, folder.parent / "config.pbtxt")


class Runtime:
    """An engine, reachable by both protocols without sockets. Lives on the loop it was made on."""

    def __init__(self, engine: Engine, scratch: Path) -> None:
        self._engine = engine
        self._scratch = scratch
        self._loop = asyncio.get_running_loop()
        limits = HttpLimits(max_body_bytes=_MAX_BODY_BYTES)
        self._listener = Listener(V2Application(engine), cast(Any, None), limits)  # it never starts: there is no socket
        self._service = V2Service(engine)
        self._tripwire = _Tripwire()
        logging.getLogger("serving_runtime").addHandler(self._tripwire)

    def targets(self) -> dict[str, Target]:
        return {
            "http": self.http,
            "infer": self.infer,
            "plain": self.plain,
            "grpc": self.grpc,
            "h2": self.h2,
            "config": self.config,
            "tensors": self.tensors,
        }

    def http(self, data: bytes) -> None:
        """Feed a connection: the first byte says into how many pieces the rest is cut."""
        pieces = 1 + data[0] % 8 if data else 1
        size = max(1, -(-len(data) // pieces))
        self._loop.run_until_complete(self._converse([data[at : at + size] for at in range(1, len(data), size)]))

    def infer(self, data: bytes) -> None:
        """Post a body to a model; the first byte picks the model, the next two an Inference-Header-Content-Length."""
        if len(data) < 3:
            return
        model = ("mlp", "text", "int8")[data[0] % 3]
        length = int.from_bytes(data[1:3], "little")
        header = f"Inference-Header-Content-Length: {length}\r\n" if length else ""
        body = data[3:]
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\n{header}Content-Length: {len(body)}\r\n\r\n"
        self._loop.run_until_complete(self._converse([head.encode() + body]))

    def plain(self, data: bytes) -> None:
        """Post JSON to the calls beside infer; the first byte picks the call, the model, and compression."""
        if not data:
            return
        model = ("mlp", "text", "int8")[data[0] % 3]
        paths = ("/v1/models/{}:predict", *(f"/v2/models/{{}}/{call}" for call in _PLAIN_CALLS))
        path = paths[data[0] // 3 % len(paths)].format(model)
        body, header = (zlib.compress(data[1:]), "Content-Encoding: deflate\r\n") if data[0] > 127 else (data[1:], "")
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\n{header}Accept-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._loop.run_until_complete(self._converse([head.encode() + body]))

    def grpc(self, data: bytes) -> None:
        """Send a ModelInferRequest."""
        with contextlib.suppress(DecodeError):
            request = ModelInferRequest.FromString(data)
            self._loop.run_until_complete(self._call(request))

    def h2(self, data: bytes) -> None:
        """Feed a connection of the own HTTP/2, which was greeted: the first byte says into how many pieces."""
        pieces = 1 + data[0] % 8 if data else 1
        size = max(1, -(-len(data) // pieces))
        self._loop.run_until_complete(self._greet([data[at : at + size] for at in range(1, len(data), size)]))

    def config(self, data: bytes) -> None:
        """Read a config.pbtxt as a load does."""
        self._scratch.write_bytes(data)
        with contextlib.suppress(ModelError):
            config = text.read(self._scratch, "model")
            text.as_json(config)
            refuse_unsupported(config, "model")
            ModelConfig.from_message(config)

    def tensors(self, data: bytes) -> None:
        """Decode a tensor: a byte for its datatype, one for its rank, eight for each dimension, then its content."""
        if len(data) < 2:
            return
        datatype = list(DATATYPES.values())[data[0] % len(DATATYPES)]
        rank = data[1] % 5
        shape = [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(2, 2 + 8 * rank, 8)]
        with contextlib.suppress(ServingError):
            array = tensors.decode(memoryview(data)[2 + 8 * rank :], datatype, tensors.checked_shape(shape, "x"), "x")
            tensors.encode(array, datatype)

    async def _converse(self, pieces: list[bytes]) -> None:
        transport = _MemoryTransport()
        connection = Connection(self._listener)
        connection.connection_made(transport)
        for piece in pieces:
            if not transport.closing:
                connection.data_received(piece)
        await self._settle()
        connection.connection_lost(None)
        self._tripwire.check()
        if transport.written and not transport.written.startswith((b"HTTP/1.1 2", b"HTTP/1.1 1", b"HTTP/1.1 4")):
            known = (b"HTTP/1.1 501 ", b"HTTP/1.1 503 ")
            if not transport.written.startswith(known):
                raise FindingError(bytes(transport.written[:300]))

    async def _greet(self, pieces: list[bytes]) -> None:
        transport = _MemoryTransport()
        server = Http2GrpcServer([self._service], GrpcSettings(max_message_bytes=_MAX_BODY_BYTES), CallPolicy())
        connection = Http2Connection(server)
        connection.connection_made(transport)
        connection.data_received(frames.PREFACE + frames.settings({}))
        for piece in pieces:
            if not transport.closing:
                connection.data_received(piece)
        await self._settle()
        connection.connection_lost(None)
        await asyncio.sleep(0)  # what was cancelled ends
        if connection.streams or connection.out.unsent_bytes:
            raise FindingError("a connection that is lost still has streams or content")
        self._tripwire.check()

    async def _call(self, request: Any) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._service.model_infer(request)
        except ServingError as error:
            if http_status(error) == 500:
                raise FindingError(error.message) from error
        self._tripwire.check()

    async def _settle(self) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await asyncio.sleep(0)
                # A model that a busy machine slows down leaves the loop for a thread.
                while self._engine.inflight:  # noqa: ASYNC110
                    await asyncio.sleep(0.0001)
        except TimeoutError as error:
            raise FindingError("a request was not answered") from error
