"""Command `replay`: replays recorded requests on one model, in their order, without serving clients.

Standard input has a line per request, {"id": ..., "data": ...}, the data as in the payload tap's events. Standard
output has {"schema": ..., "ready": true} once the model is loaded, then a line per request in the same order: the tap's
event of its first answer or error. Exit 0 at the end of the input, 2 when the model cannot be served.

With --http-port the same lines come and go over HTTP, for a caller on another machine: see `replay_http`.
"""

import asyncio
import base64
import binascii
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import uvloop

from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.request import InferRequest, Outcome, Tensor
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.tensors import binary, json_tensors
from serving_runtime.server.commands import replay_http
from serving_runtime.server.flags import command_line
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import add_bool
from serving_runtime.server.serve import make_engine
from serving_runtime.server.sockets import bind
from serving_runtime.telemetry.tap.events import Exchange, event
from serving_runtime.telemetry.tap.writing import written

SCHEMA = "fairlead.replay/v1"
_SOURCE = "/replay"


def main(arguments: Sequence[str]) -> int:
    """Run `replay`; returns the exit code."""
    parser = Parser(prog="fairlead-serve replay", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("model_dir", type=Path, metavar="MODEL_DIR", help="folder of one model in a model repository")
    add_bool(parser, "--allow-python-models", default=False, text="runs a model whose files are code")
    replay_http.add(parser)
    found = parser.parse_args(arguments[1:])
    folder = found.model_dir.absolute()
    flags = [f"--model-repository={folder.parent}", "--model-control-mode=explicit", f"--load-model={folder.name}"]
    flags.append(f"--allow-python-models={str(found.allow_python_models).lower()}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if found.http_port is not None:
            return runner.run(_listen(command_line.parse(flags), folder.name, replay_http.Endpoint.of(found)))
        return runner.run(_run(command_line.parse(flags), folder.name))


async def _listen(chosen: command_line.Options, model: str, endpoint: replay_http.Endpoint) -> int:
    sock = bind(endpoint.address, endpoint.port, "http")
    engine = make_engine(chosen)
    errors = await engine.load_all()
    if errors:
        sys.stderr.write(f"{errors[0]}\n")
        return 2
    await replay_http.serve(endpoint, sock, lambda line: answered(engine, model, line))
    engine.close()
    return 0


async def _run(chosen: command_line.Options, model: str) -> int:
    engine = make_engine(chosen)
    errors = await engine.load_all()
    if errors:
        _write(orjson.dumps({"schema": SCHEMA, "error": str(errors[0])}))
        return 2
    _write(orjson.dumps({"schema": SCHEMA, "ready": True}))
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        _write(await answered(engine, model, line))
    engine.close()
    return 0


async def answered(engine: Engine, model: str, line: bytes) -> bytes:
    """Return the event, without a line's end, of the model's first response or error to a recorded request."""
    asked = orjson.loads(line)
    at = datetime.now(UTC)
    request = InferRequest(model, "", ())
    outcome: Outcome
    try:
        request = request_of(model, asked["data"])
        outcome = await _answer(engine, request)
    except ServingError as error:
        outcome = error
    return written(event(Exchange(asked["id"], 1, request, outcome, at), _SOURCE))


async def _answer(engine: Engine, request: InferRequest) -> Outcome:
    """Return the first response, for a decoupled model without the others; raises the error of a refusal."""
    first: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def take(outcome: Outcome) -> None:
        if not first.done():
            first.set_result(outcome)

    engine.stream(request, take)
    return await first


def request_of(model: str, data: Mapping[str, Any]) -> InferRequest:
    """Return the request in an event's `data`, to `model`'s default version; raises InvalidArgument."""
    wanted = data.get("outputs", ())
    classes = {each["name"]: each["parameters"]["classification"] for each in wanted if "parameters" in each}
    return InferRequest(
        model,
        "",
        tuple(_tensor(item) for item in data["inputs"]),
        outputs=tuple(each["name"] for each in wanted),
        id=data.get("id", ""),
        parameters=data.get("parameters", {}),
        classes=classes,
    )


def _tensor(item: Mapping[str, Any]) -> Tensor:
    name = item["name"]
    datatype, shape = binary.datatype_named(item["datatype"], name), binary.checked_shape(item["shape"], name)
    if item.get("parameters", {}).get("encoding") != "base64":
        return Tensor(name, datatype, json_tensors.decode(item["data"], datatype, shape, name))
    try:
        content = memoryview(base64.b64decode(item["data"][0], validate=True))
    except (binascii.Error, IndexError) as error:
        raise InvalidArgument(f"input '{name}': data is not one base64 text") from error
    return Tensor(name, datatype, binary.decode(content, datatype, shape, name))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
