"""The barest server of models there can be in Python: no checks, no statistics, no deadlines, no limits, no errors.

Fairlead is measured by how near it comes to this. HTTP with V2's binary tensors and gRPC on HTTP/2 frames, an
asyncio.Protocol each on uvloop; requests that arrive together run together, in the event loop. As `echo` it answers
what no model made.

    python prototype.py prototype|echo PORT_FILE MODELS
"""

import asyncio
import struct
import sys
from pathlib import Path

import httptools
import numpy as np
import onnxruntime
import orjson
import uvloop

from serving_runtime.proto import ModelInferRequest, ModelInferResponse

_DTYPES = {"FP32": np.dtype("f4"), "INT64": np.dtype("i8")}
_FRAME = struct.Struct(">BHBBI")
_HEADERS = b"\x88\x0f\x10\x10application/grpc"  # :status 200, content-type
_TRAILERS = b"\x00\x0bgrpc-status\x010"


class Queue:
    """One model: what waits for it, and its runs."""

    def __init__(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._run = session._sess.run  # without its checks
        self._joins = file.stem in ("mlp_small", "bert_mini_batched", "image_mean")
        self._waiting: list = []

    def ask(self, array, reply) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        self._waiting.append((array, reply))

    def _work(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not self._joins and len(waiting) > 1:
            waiting, self._waiting = waiting[:1], waiting[1:]
            asyncio.get_running_loop().call_soon(self._work)
        batch = waiting[0][0] if len(waiting) == 1 else np.concatenate([array for array, _ in waiting])
        (output,) = self._run(["y"], {"x": batch}, None)
        at = 0
        for array, reply in waiting:
            reply(output[at : at + len(array)])
            at += len(array)


class Http(asyncio.Protocol):
    def __init__(self, queues) -> None:
        self._queues = queues
        self._parser = httptools.HttpRequestParser(self)
        self._pieces: list[bytes] = []

    def connection_made(self, transport) -> None:
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._name = url[1:].decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"inference-header-content-length":
            self._head_bytes = int(value)

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        tensor = orjson.loads(body[: self._head_bytes])["inputs"][0]
        array = np.frombuffer(body, _DTYPES[tensor["datatype"]], offset=self._head_bytes).reshape(tensor["shape"])
        self._queues[self._name].ask(array, self._reply)

    def _reply(self, output) -> None:
        self._write(http_answer(self._name, output))


class EchoHttp(Http):
    def on_message_complete(self) -> None:
        self._pieces = []
        self._write(_ECHO_HTTP)


def http_answer(name: str, output) -> bytes:
    told = {"name": "y", "datatype": "FP32", "shape": output.shape, "parameters": {"binary_data_size": output.nbytes}}
    head = orjson.dumps({"model_name": name, "model_version": "1", "outputs": [told]})
    sizes = (len(head), len(head) + output.nbytes)
    start = b"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % sizes
    return b"".join((start, head, output))


class Grpc(asyncio.Protocol):
    def __init__(self, queues) -> None:
        self._queues = queues
        self._rest = b""
        self._content: dict[int, bytes] = {}

    def connection_made(self, transport) -> None:
        self._write = transport.write
        self._write(_FRAME.pack(0, 0, 4, 0, 0) + _FRAME.pack(0, 4, 8, 0, 0) + (2**30).to_bytes(4, "big"))
        self._rest = b""
        self._preface = 24

    def data_received(self, data: bytes) -> None:
        data, at = self._rest + data, self._preface
        self._preface = 0
        while len(data) - at >= _FRAME.size:
            high, low, kind, flags, stream = _FRAME.unpack_from(data, at)
            end = at + _FRAME.size + (high << 16 | low)
            if end > len(data):
                break
            if kind == 0:
                content = self._content.pop(stream, b"") + data[at + _FRAME.size : end]
                if flags & 1:
                    self._answer(stream, content)
                else:
                    self._content[stream] = content
            elif kind == 4 and not flags & 1:
                self._write(_FRAME.pack(0, 0, 4, 1, 0))
            elif kind == 6 and not flags & 1:
                self._write(_FRAME.pack(0, 8, 6, 1, 0) + data[at + _FRAME.size : end])
            at = end
        self._rest = data[at:]

    def _answer(self, stream: int, content: bytes) -> None:
        request = ModelInferRequest.FromString(content[5:])
        tensor = request.inputs[0]
        array = np.frombuffer(request.raw_input_contents[0], _DTYPES[tensor.datatype]).reshape(tuple(tensor.shape))

        def reply(output) -> None:
            self._write(grpc_answer(stream, grpc_message(request.model_name, output)))

        self._queues[request.model_name].ask(array, reply)


class EchoGrpc(Grpc):
    def _answer(self, stream: int, _content: bytes) -> None:
        self._write(grpc_answer(stream, _ECHO_GRPC))


def grpc_message(name: str, output) -> bytes:
    message = ModelInferResponse(model_name=name, model_version="1")
    message.outputs.add(name="y", datatype="FP32", shape=output.shape)
    message.raw_output_contents.append(output.tobytes())
    return message.SerializeToString()


def grpc_answer(stream: int, message: bytes) -> bytes:
    size = len(message) + 5
    return b"".join(
        (
            _FRAME.pack(0, len(_HEADERS), 1, 4, stream) + _HEADERS,
            _FRAME.pack(size >> 16, size & 0xFFFF, 0, 0, stream) + b"\0" + len(message).to_bytes(4, "big"),
            message,
            _FRAME.pack(0, len(_TRAILERS), 1, 5, stream) + _TRAILERS,
        )
    )


_ECHO = np.zeros((1, 10), "f4")
_ECHO_HTTP, _ECHO_GRPC = http_answer("mlp_small", _ECHO), grpc_message("mlp_small", _ECHO)


async def main(kind: str, ports: Path, models: Path) -> None:
    loop = asyncio.get_running_loop()
    files = sorted(models.glob("*.onnx"))  # noqa: ASYNC240 - before there are clients
    queues = {file.stem: Queue(file) for file in files} if kind == "prototype" else {}
    protocols = (Http, Grpc) if kind == "prototype" else (EchoHttp, EchoGrpc)
    servers = [await loop.create_server(lambda made=made: made(queues), "127.0.0.1", 0) for made in protocols]
    bound = " ".join(str(server.sockets[0].getsockname()[1]) for server in servers)
    ports.with_suffix(".partial").write_text(bound)
    ports.with_suffix(".partial").rename(ports)
    await asyncio.gather(*[server.serve_forever() for server in servers])


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
