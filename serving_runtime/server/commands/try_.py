"""Command `try`: runs one V2 request on one model as the server would, and reports the time it took.

It opens no port. Standard output has one object: the response in V2's JSON or the server's error, with the load time of
the model, the time of the first response, and the median of some more; a stateful model, with sequences, runs once.
Exit 0 for a response, 3 for a refusal, 2 when the model cannot be served.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import uvloop

from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.protocol.http.wire.message import JSON, Request, Response, error_response, text_error
from serving_runtime.server.flags import command_line
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import add_bool, add_config_name, positive
from serving_runtime.server.serve import make_engine

SCHEMA, PROGRESS_SCHEMA = "fairlead.try/v1", "fairlead.try-progress/v1"
_NOT_ASKED, _REFUSED = 2, 3
_OK = 200
_MOST_REQUEST_BYTES = 64 << 20
_MOST_LABELS_BYTES = 256 << 10
_WARM_RUNS, _WARM_S = 5, 2.0


@dataclass(frozen=True, slots=True)
class _Answered:
    status: int
    body: bytes
    is_json: bool
    took_ms: float


def main(arguments: Sequence[str]) -> int:
    """Run `try`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    try:
        request = _request(found)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            document = runner.run(_tried(found, request))
    except (ServingError, OSError) as error:
        _print(found, {"schema": SCHEMA, "error": str(error)})
        return _NOT_ASKED
    _print(found, document)
    return 0 if document["status"] == _OK else _REFUSED


def _parser() -> Parser:
    parser = Parser(prog="fairlead-serve try", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("model_dir", type=Path, metavar="MODEL_DIR", help="folder of one model in a model repository")
    parser.add_argument(
        "--request", type=Path, required=True, metavar="FILE.json", help="body of a V2 inference request"
    )
    parser.add_argument(
        "--max-answer-bytes",
        type=positive,
        default=1 << 20,
        metavar="N",
        help="maximum size of the answer; a larger one is left out (1 MiB)",
    )
    add_bool(parser, "--allow-python-models", default=False, text="tries a model whose files are code, by running it")
    add_config_name(parser)
    parser.add_argument(
        "--json", action="store_true", help="prints one line of JSON (default: indented); progress on stderr"
    )
    return parser


def _request(found: argparse.Namespace) -> bytes:
    file: Path = found.request
    if file.stat().st_size > _MOST_REQUEST_BYTES:
        raise ModelError(f"the request {file} has more than {_MOST_REQUEST_BYTES} bytes")
    return file.read_bytes()


async def _tried(found: argparse.Namespace, request: bytes) -> dict[str, Any]:
    folder = found.model_dir.absolute()
    engine = make_engine(_options(found, folder))
    _say(found, "loading the model")
    began = time.perf_counter()
    errors = await engine.load_all()
    load_ms = 1000 * (time.perf_counter() - began)
    if errors:
        raise errors[0]
    try:
        _say(found, "answering")
        application = V2Application(engine)
        asked = Request(b"POST", f"/v2/models/{quote(folder.name, safe='')}/infer".encode(), request, 0, None)
        first = await _answered(application, asked)
        warm = await _warm(application, asked) if first.status == _OK and _may_repeat(engine, folder.name) else []
        times = {
            "load_ms": round(load_ms, 3),
            "first_ms": round(first.took_ms, 3),
            "infer_ms": round(statistics.median(warm or [first.took_ms]), 3),
            "runs": len(warm) or 1,
        }
        return {"schema": SCHEMA, "status": first.status, **times, **_said(found, first, engine, folder.name)}
    finally:
        engine.close()


def _options(found: argparse.Namespace, folder: Path) -> command_line.Options:
    flags = [f"--model-repository={folder.parent}", "--model-control-mode=explicit", f"--load-model={folder.name}"]
    flags.append(f"--allow-python-models={str(found.allow_python_models).lower()}")
    flags += [f"--model-config-name={found.model_config_name}"] if found.model_config_name else []
    return command_line.parse(flags)


def _may_repeat(engine: Engine, name: str) -> bool:
    """Return whether the request may be repeated: not where it is one of a sequence."""
    return engine.servable(name).config.sequences is None


async def _warm(application: V2Application, asked: Request) -> list[float]:
    """Return the durations of some more runs, in milliseconds; of a slow model fewer."""
    times: list[float] = []
    until = time.perf_counter() + _WARM_S
    while len(times) < _WARM_RUNS and time.perf_counter() < until:
        times.append((await _answered(application, asked)).took_ms)
    return times


async def _answered(application: V2Application, asked: Request) -> _Answered:
    """Return the bytes that a connection would have written."""
    replied: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    began = time.perf_counter()
    try:
        application.handle(asked, replied.set_result)
        response = await replied
    except ServingError as error:
        response = error_response(error)
    except Exception as error:  # a bug of ours, reported as a server reports it
        sys.stderr.write(f"answering failed: {type(error).__name__}: {error}\n")
        response = text_error(500, "internal error")
    took_ms = 1000 * (time.perf_counter() - began)
    body = b"".join(bytes(chunk) for chunk in response.chunks)
    return _Answered(response.status, body, response.headers.startswith(JSON), took_ms)


def _said(found: argparse.Namespace, answered: _Answered, engine: Engine, name: str) -> dict[str, Any]:
    """Return the response with the labels of its classes, or a sentence instead."""
    if answered.status != _OK:
        return {"error": orjson.loads(answered.body)["error"]}
    if not answered.is_json:
        return {"error": "the answer has binary tensors; ask without binary_data to have it as JSON"}
    if len(answered.body) > found.max_answer_bytes:
        return {
            "error": f"the answer has {len(answered.body)} bytes, more than the {found.max_answer_bytes} of "
            "--max-answer-bytes; send fewer rows, or name the required outputs"
        }
    labels = {output: list(known) for output, known in engine.labels(name).items()}
    fits = len(orjson.dumps(labels)) <= _MOST_LABELS_BYTES
    return {"answer": orjson.loads(answered.body), **({"labels": labels} if labels and fits else {})}


def _say(found: argparse.Namespace, stage: str) -> None:
    line = json.dumps({"schema": PROGRESS_SCHEMA, "stage": stage}) if found.json else f"fairlead-serve try: {stage}"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _print(found: argparse.Namespace, document: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(document, option=None if found.json else orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.buffer.flush()
