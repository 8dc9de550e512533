"""Where the microseconds of one small request go: each part of its way through the runtime by itself, warm.

    python -m benchmarks.serving.parts

HTTP binary and gRPC, mlp_small, 32 requests at a time as on 32 connections. The least of many repeats of processor
time, so that other work on the machine hardly matters. What a server takes on top of these are the kernel's sockets and
the event loop: `echo` of the benchmark is nothing but those.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import uvloop

from benchmarks.serving import grpc_parts, models, requests
from benchmarks.serving.peers.fairlead import save_repository
from benchmarks.serving.timing import REPEATS, least_us
from serving_runtime.common.request import InferRequest, InferResponse, Outcome
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.codec.infer import InferCodec
from serving_runtime.protocol.http.wire import response_writer
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.message import STATUS_LINES, Request, Response
from serving_runtime.protocol.http.wire.reader import RequestReader

_MODEL = models.MODELS["mlp_small"]
_TOGETHER = 32

Parts = list[tuple[str, float]]


class _Keeps:
    """A connection that keeps the last request."""

    request: Request

    def on_request_begun(self) -> None: ...
    def on_body_awaited(self) -> None: ...
    def on_refusal(self, response: Response) -> None:
        raise AssertionError(response)

    def on_request(self, request: Request, keep_alive: bool) -> None:  # noqa: ARG002 - as a connection has it
        self.request = request


async def _through_engine(engine: Engine, request: InferRequest) -> tuple[float, InferResponse]:
    """Return the microseconds of a request from the engine's door to its answer, and an answer."""
    found: list[Outcome] = []
    least = float("inf")
    for _ in range(REPEATS * 4):
        found.clear()
        began = time.process_time_ns()
        for _ in range(_TOGETHER):
            engine.infer(request, found.append)
        while len(found) < _TOGETHER:  # noqa: ASYNC110 - the next pass of the loop
            await asyncio.sleep(0)
        least = min(least, (time.process_time_ns() - began) / _TOGETHER / 1000)
    assert isinstance(found[0], InferResponse)
    return least, found[0]


async def _engine_parts(engine: Engine, request: InferRequest, file: Path) -> tuple[Parts, InferResponse]:
    """Return what is the same whichever protocol a request came by, and an answer."""
    through, response = await _through_engine(engine, request)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    batch = np.repeat(_MODEL.sample, _TOGETHER, axis=0)
    run = least_us(lambda: session.run(["y"], {"x": batch}), _TOGETHER) / _TOGETHER
    rows = [_MODEL.sample] * _TOGETHER
    join = least_us(lambda: np.concatenate(rows), _TOGETHER) / _TOGETHER
    plan = engine.servable(_MODEL.name)._plan
    arrange = least_us(lambda: (plan.arrange(request.inputs), plan.selection(request.outputs)))
    parts = [
        ("model: names, datatypes, shapes against its signature", arrange),
        ("queue, statistics, parting the batch, callbacks", through - run - join - arrange),
        ("joining the inputs of 32 requests, a share of it", join),
        ("ONNX Runtime on 32 rows, a share of it", run),
    ]
    return parts, response


def _http_parts(engine: Engine) -> tuple[Parts, InferRequest, Callable[[InferResponse], Parts]]:
    """Return the parts before the engine, the request, and what finds those behind it."""
    body = requests.v2_binary(_MODEL)
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**body.headers, "Host": "127.0.0.1"}.items())
    head = f"POST /v2/models/{_MODEL.name}/infer HTTP/1.1\r\n{lines}Content-Length: {len(body.content)}\r\n\r\n"
    raw = head.encode() + body.content
    keeps = _Keeps()
    reader = RequestReader(keeps, HttpLimits(), None)
    parts = [("HTTP: parse, put the request together", least_us(lambda: reader.feed(raw)))]
    codec = InferCodec(_MODEL.name, "", engine)
    request, form = codec.decode(keeps.request)
    parts.append(("V2: head from the cache, tensors as views, checks", least_us(lambda: codec.decode(keeps.request))))

    def behind(response: InferResponse) -> Parts:
        told = codec.encode(response, form)
        return [
            ("V2: answer, its head from the cache", least_us(lambda: codec.encode(response, form))),
            ("HTTP: answer as bytes", least_us(lambda: response_writer.whole(STATUS_LINES, told, keep_alive=True))),
        ]

    return parts, request, behind


async def _parts(folder: Path) -> dict[str, Parts]:
    file = folder / f"{_MODEL.name}.onnx"
    models.save(_MODEL.name, file)
    save_repository(folder, folder / "repository", [_MODEL.name])
    engine = Engine([folder / "repository"], LoadSettings())
    await engine.load_all()
    before, request, behind = _http_parts(engine)
    middle, response = await _engine_parts(engine, request, file)
    found = {"HTTP binary": [*before, *middle, *behind(response)]}
    before, behind = grpc_parts.found(engine, requests.v2_grpc(_MODEL))
    found["gRPC"] = [*before, *middle, *behind(response)]
    engine.close()
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="fairlead-parts-") as name:
        found = uvloop.run(_parts(Path(name)))
    for protocol, parts in found.items():
        print(protocol)
        for what, took_us in parts:
            print(f"{took_us:6.2f} us  {what}")
        print(f"{sum(took for _, took in parts):6.2f} us  together\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
