"""Where the microseconds of one small request go: each part of its way through the runtime by itself, warm.

    python -m benchmarks.serving.parts

HTTP binary, mlp_small, 32 requests at a time as on 32 connections. The least of many repeats of processor time, so that
other work on the machine hardly matters. What a server takes on top of these are the kernel's sockets and the event
loop: `echo` of the benchmark is nothing but those.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import uvloop

from benchmarks.serving import models, requests
from benchmarks.serving.peers.fairlead import save_repository
from serving_runtime.engine.engine import Engine
from serving_runtime.engine.load_settings import LoadSettings
from serving_runtime.protocol.http import answer
from serving_runtime.protocol.http.infer import InferCodec
from serving_runtime.protocol.http.limits import HttpLimits
from serving_runtime.protocol.http.message import STATUS_LINES, Request, Response
from serving_runtime.protocol.http.reader import RequestReader
from serving_runtime.request import InferResponse, Outcome

_MODEL = models.MODELS["mlp_small"]
_TOGETHER, _CALLS, _REPEATS = 32, 320, 60


class _Keeps:
    """A connection that keeps the last request."""

    request: Request

    def on_request_begun(self) -> None: ...
    def on_body_awaited(self) -> None: ...
    def on_refusal(self, response: Response) -> None:
        raise AssertionError(response)

    def on_request(self, request: Request, keep_alive: bool) -> None:  # noqa: ARG002 - as a connection has it
        self.request = request


def least_us(work: Callable[[], Any], calls: int = _CALLS) -> float:
    """Return the microseconds of one call: the least of many repeats."""
    found = []
    for _ in range(_REPEATS):
        began = time.process_time_ns()
        for _ in range(calls):
            work()
        found.append((time.process_time_ns() - began) / calls / 1000)
    return min(found)


async def _through_engine(engine: Engine, request: Any) -> tuple[float, InferResponse]:
    """Return the microseconds of a request from the engine's door to its answer, and an answer."""
    found: list[Outcome] = []
    least = float("inf")
    for _ in range(_REPEATS * 4):
        found.clear()
        began = time.process_time_ns()
        for _ in range(_TOGETHER):
            engine.infer(request, found.append)
        while len(found) < _TOGETHER:  # noqa: ASYNC110 - the next pass of the loop
            await asyncio.sleep(0)
        least = min(least, (time.process_time_ns() - began) / _TOGETHER / 1000)
    assert isinstance(found[0], InferResponse)
    return least, found[0]


async def _parts(folder: Path) -> list[tuple[str, float]]:
    models.save(_MODEL.name, folder / f"{_MODEL.name}.onnx")
    save_repository(folder, folder / "repository", [_MODEL.name])
    engine = Engine([folder / "repository"], LoadSettings())
    await engine.load_all()
    body = requests.v2_binary(_MODEL)
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**body.headers, "Host": "127.0.0.1"}.items())
    head = f"POST /v2/models/{_MODEL.name}/infer HTTP/1.1\r\n{lines}Content-Length: {len(body.content)}\r\n\r\n"
    raw = head.encode() + body.content
    keeps = _Keeps()
    reader = RequestReader(keeps, HttpLimits(), None)
    parts = [("HTTP: parse, put the request together", least_us(lambda: reader.feed(raw)))]
    codec = InferCodec(_MODEL.name, "", engine)
    request, infer_head = codec.decode(keeps.request)
    parts.append(("V2: head from the cache, tensors as views, checks", least_us(lambda: codec.decode(keeps.request))))
    through, response = await _through_engine(engine, request)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / f"{_MODEL.name}.onnx", options, providers=["CPUExecutionProvider"])
    batch = np.repeat(_MODEL.sample, _TOGETHER, axis=0)
    run = least_us(lambda: session.run(["y"], {"x": batch}), _TOGETHER) / _TOGETHER
    rows = [_MODEL.sample] * _TOGETHER
    join = least_us(lambda: np.concatenate(rows), _TOGETHER) / _TOGETHER
    plan = engine.servable(_MODEL.name)._plan
    arrange = least_us(lambda: (plan.arrange(request.inputs), plan.selection(request.outputs)))
    parts += [
        ("model: names, datatypes, shapes against its signature", arrange),
        ("queue, statistics, parting the batch, callbacks", through - run - join - arrange),
        ("joining the inputs of 32 requests, a share of it", join),
        ("ONNX Runtime on 32 rows, a share of it", run),
        ("V2: answer, its head from the cache", least_us(lambda: codec.encode(response, infer_head))),
    ]
    told = codec.encode(response, infer_head)
    parts.append(("HTTP: answer as bytes", least_us(lambda: answer.whole(STATUS_LINES, told, keep_alive=True))))
    engine.close()
    return parts


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="fairlead-parts-") as name:
        parts = uvloop.run(_parts(Path(name)))
    for what, took_us in parts:
        print(f"{took_us:6.2f} us  {what}")
    print(f"{sum(took for _, took in parts):6.2f} us  together")
    return 0


if __name__ == "__main__":
    sys.exit(main())
