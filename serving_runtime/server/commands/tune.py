"""Command `tune`: searches for the best configuration of a model on this machine, with its p99 under a limit.

Exit 0, 2 when the model cannot be measured, or 3 when no tried setting keeps to the limit. The model's folder is not
changed: the result is written to the files of --config, --output and --plot.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ServingError
from serving_runtime.devices import nvml
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import add_bool, positive
from serving_runtime.tuning import report as reporting
from serving_runtime.tuning import served
from serving_runtime.tuning.cores import usable_cores
from serving_runtime.tuning.measurement import Measurement
from serving_runtime.tuning.plot import plot
from serving_runtime.tuning.requests import shape_of
from serving_runtime.tuning.run_search import Order, tune

_REFUSED, _NONE_CHOSEN = 2, 3
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def main(arguments: Sequence[str]) -> int:
    """Run `tune`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # its server ends with it
    limit_ms = found.max_latency_p99_ms

    def on_measured(measured: Sequence[Measurement], spent: float) -> None:
        line = json.dumps(reporting.progress(limit_ms, measured, spent)) if found.json else None
        sys.stderr.write(f"{line or reporting.progress_line(measured, spent)}\n")
        sys.stderr.flush()

    model = found.model_dir.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="fairlead-tune-") as scratch:
            document, config = tune(
                model,
                Path(scratch),
                _order(found),
                on_measured,
                allow_python_models=found.allow_python_models,
                config_name=found.model_config_name,
            )
        document["machine"] = _machine()
        _write(found, document, config, model.name)
    except (ServingError, OSError) as error:
        if found.json:
            sys.stdout.write(json.dumps({"schema": reporting.SCHEMA, "error": str(error)}) + "\n")
        else:
            sys.stderr.write(f"fairlead-serve tune: {error}\n")
        return _REFUSED
    if found.json:
        document["plot"] = plot(document, "Throughput and latency")
    sys.stdout.write((json.dumps(document) if found.json else "\n".join(reporting.lines(document))) + "\n")
    return 0 if document["chosen"] else _NONE_CHOSEN


def _parser() -> Parser:
    parser = Parser(prog="fairlead-serve tune", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("model_dir", type=Path, metavar="MODEL_DIR", help="folder of one model in a model repository")
    parser.add_argument(
        "--max-latency-p99-ms",
        type=_milliseconds,
        required=True,
        metavar="MS",
        help="maximum p99 latency of requests, as seen by clients on this machine",
    )
    parser.add_argument(
        "--budget",
        type=_duration,
        default=300.0,
        metavar="TIME",
        help="time limit of the search, such as 90s or 5m (5m)",
    )
    parser.add_argument(
        "--window", type=_duration, default=1.0, metavar="TIME", help="duration of one measurement (1s)"
    )
    parser.add_argument("--rows", type=positive, default=1, metavar="N", help="rows of a request (1)")
    parser.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        metavar="INPUT:DIMS",
        help="shape of an input with variable dims, without the batch, such as tokens:128 (1 each); may be repeated",
    )
    parser.add_argument(
        "--largest-request-rows",
        type=positive,
        metavar="N",
        help="maximum rows that clients send in one request; allows a smaller max_batch_size (as many as now)",
    )
    parser.add_argument(
        "--max-batch-size", type=positive, default=128, metavar="N", help="maximum batch size to try (128)"
    )
    parser.add_argument(
        "--max-instances", type=positive, metavar="N", help="maximum number of instances to try (cores; on a GPU 4)"
    )
    parser.add_argument(
        "--max-concurrency", type=positive, default=256, metavar="N", help="maximum concurrent requests (256)"
    )
    parser.add_argument(
        "--model-config-name", default="", metavar="NAME", help="starts from configs/NAME.pbtxt where it exists"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="file for a plot of the frontier")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="file for all measurements")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="file for the model's config.pbtxt with the chosen settings"
    )
    add_bool(parser, "--allow-python-models", default=False, text="tunes a model whose files are code, by running it")
    parser.add_argument(
        "--json", action="store_true", help="prints one line of JSON, also for errors; progress as JSON lines"
    )
    return parser


def _order(found: argparse.Namespace) -> Order:
    bounds = served.Bounds(
        limit_ms=found.max_latency_p99_ms,
        cores=usable_cores(),
        max_instances=found.max_instances,
        max_batch_size=found.max_batch_size,
        max_concurrency=found.max_concurrency,
        largest_request_rows=max(found.largest_request_rows, found.rows) if found.largest_request_rows else None,
    )
    return Order(bounds, found.budget, found.window, found.rows, dict(found.shape))


def _write(found: argparse.Namespace, document: dict[str, Any], config: str, name: str) -> None:
    if found.output is not None:
        found.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if found.plot is not None:
        found.plot.write_text(plot(document, f"{name}: throughput and latency"), encoding="utf-8")
    if found.config is not None and document["chosen"]:
        found.config.write_text(config, encoding="utf-8")


def _machine() -> dict[str, Any]:
    gpus = nvml.mine().gpus
    return {
        "cpus": usable_cores(),
        "architecture": os.uname().machine,
        "gpu": {"name": gpus[0].name, "mig_profile": gpus[0].profile} if gpus else None,
    }


def _milliseconds(text: str) -> float:
    return _positive_number(text, "a number of milliseconds above 0")


def _duration(text: str) -> float:
    unit = _SECONDS.get(text[-1:], 0)
    expected = "a time such as 90s, 5m or 1h"
    if not unit:
        raise argparse.ArgumentTypeError(f"'{text}' is not {expected}")
    return unit * _positive_number(text[:-1], expected)


def _positive_number(text: str, expected: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not {expected}")
    return number


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    try:
        return shape_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
