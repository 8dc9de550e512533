"""Command line parser of the server, flags named as Triton names them. Unsupported flags are refused by name."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from serving_runtime import __version__
from serving_runtime.protocol.restrictions import CONTROL
from serving_runtime.server.flags import grpc as grpc_options
from serving_runtime.server.flags import http as http_options
from serving_runtime.server.flags import metrics as metrics_options
from serving_runtime.server.flags import models as model_options
from serving_runtime.server.flags import payload_logger, refused
from serving_runtime.server.flags import tap as tap_options
from serving_runtime.server.flags import trace as trace_options
from serving_runtime.server.flags.grpc import GrpcOptions
from serving_runtime.server.flags.http import HttpOptions
from serving_runtime.server.flags.metrics import MetricsOptions
from serving_runtime.server.flags.models import ModelOptions
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.payload_logger import LoggerOptions
from serving_runtime.server.flags.tap import TapOptions
from serving_runtime.server.flags.types import INHERITED, UNIX, add_bool, boolean, count, positive, revision
from serving_runtime.shared import json_log
from serving_runtime.telemetry.log_settings import DEFAULT, FORMATS, JSON, LogSettings
from serving_runtime.telemetry.tracing.settings import OPENTELEMETRY, TraceOptions

CONTROL_CALLS = "FAIRLEAD_ALLOW_CONTROL_CALLS"
"""An environment variable, which older runtimes ignore: an unknown flag would keep them from starting."""

DESCRIPTION = """Serves the models of a repository over the V2 protocol (HTTP, gRPC) with Prometheus metrics.

other commands:
  inspect MODEL_DIR --json   prints signature and platform of one model's folder
  profile MODEL_DIR --json   measures load time, memory, and latency per batch size
  check-config --json        checks fields of a config.pbtxt on standard input, without a model
  replay MODEL_DIR           replays recorded requests from standard input (`replay --help`)
  tune MODEL_DIR ...         searches for the configuration that serves most within a latency (`tune --help`)
  build MODEL_DIR ...        builds FP16, INT8 or a TensorRT plan from an ONNX model (`build --help`)
  proxy --target_port N ...  counts requests in front of a container of your own (`proxy --help`)
  pool-fetcher --catalog DIR fetches models for a model pool (`pool-fetcher --help`)
  prepare --artifact DIR ... lays out a stored model in a model repository (`prepare --help`)
  upload DIR --to URL        sends a folder to the control plane (`upload --help`)
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Parsed options."""

    models: ModelOptions
    http: HttpOptions
    grpc: GrpcOptions
    metrics: MetricsOptions
    tap: TapOptions
    logger: LoggerOptions
    port_file: Path | None
    exit_timeout_s: int
    max_concurrent_requests: int
    max_request_memory_bytes: int | None
    workers: int
    allow_client_shm: bool
    allow_control_calls: bool
    id: str
    revision: str
    log: LogSettings
    trace: TraceOptions

    @property
    def closed_groups(self) -> frozenset[str]:
        """Return the groups of calls that are closed to all clients."""
        return frozenset() if self.allow_control_calls else CONTROL

    @property
    def exports_traces(self) -> bool:
        """Return whether traces are exported as OpenTelemetry spans, which continue the callers' traces."""
        return self.trace.mode == OPENTELEMETRY


def parse(arguments: Sequence[str]) -> Options:
    """Return the options; exits with one line and 1 where they are wrong."""
    parser = _parser()
    found = parser.parse_args(arguments)
    if not (found.allow_http or found.allow_grpc):
        parser.error("--allow-http and --allow-grpc are both false, which leaves nothing to serve")
    if twice := _place_of_two(found):
        parser.error(f"two endpoints cannot both be at {twice}")
    return Options(
        models=ModelOptions.parsed(parser, found),
        http=HttpOptions.parsed(parser, found),
        grpc=GrpcOptions.parsed(parser, found),
        metrics=MetricsOptions.parsed(parser, found),
        tap=TapOptions.parsed(found),
        logger=LoggerOptions.parsed(found),
        port_file=found.port_file,
        exit_timeout_s=found.exit_timeout_secs,
        max_concurrent_requests=found.max_concurrent_requests,
        max_request_memory_bytes=found.max_request_memory_bytes,
        workers=found.workers,
        allow_client_shm=found.allow_client_shm,
        allow_control_calls=found.allow_control_calls,
        id=found.id,
        revision=found.revision or "",
        log=_log_settings(found),
        trace=trace_options.parsed(parser, found, os.environ),
    )


def _place_of_two(found: argparse.Namespace) -> str:
    """Return the Unix socket that two endpoints share by mistake; empty where they do not."""
    asked = (
        (found.allow_http, found.http_address),
        (found.allow_grpc, found.grpc_address),
        (found.allow_metrics, found.metrics_address or ""),
    )
    places = [address for allowed, address in asked if allowed and address.startswith((UNIX, INHERITED))]
    return next((address for address in places if places.count(address) > 1), "")


def _parser() -> Parser:
    parser = Parser(
        prog="fairlead-serve",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fairlead-serve {__version__}")
    model_options.add(parser.add_argument_group("models"))
    endpoints = parser.add_argument_group("endpoints")
    http_options.add(endpoints)
    grpc_options.add(endpoints)
    metrics_options.add(endpoints)
    add_bool(
        endpoints,
        "--allow-client-shm",
        default=False,
        text="allows clients to register shared memory for their tensors",
    )
    endpoints.add_argument(
        "--allow-control-calls",
        type=boolean,
        nargs="?",
        const=True,
        default=os.environ.get(CONTROL_CALLS, "true"),
        metavar="BOOL",
        help="allows clients to load and unload models, register shared memory, set log and traces "
        f"({CONTROL_CALLS}, true)",
    )
    tap_options.add(parser.add_argument_group("payload tap"))
    payload_logger.add(parser.add_argument_group("payload logger"))
    refused.add(parser)
    process = parser.add_argument_group("process")
    process.add_argument(
        "--exit-timeout-secs",
        type=count,
        default=30,
        metavar="N",
        help="maximum time to finish accepted requests after SIGTERM (30)",
    )
    process.add_argument(
        "--max-request-memory-bytes",
        type=count,
        metavar="BYTES",
        help="memory limit of all unfinished requests together, 0 for no limit (a tenth of the available memory)",
    )
    process.add_argument(
        "--max-concurrent-requests",
        type=count,
        default=0,
        metavar="N",
        help="limits concurrent requests, HTTP and gRPC together; ten times as many queue, in turns between "
        "callers; 0: no limit (0)",
    )
    process.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes that share the ports, the metrics page and the set of loaded models (1)",
    )
    process.add_argument(
        "--port-file",
        type=Path,
        metavar="PATH",
        help='file for {"http": n, "grpc": n, "metrics": n} once all sockets listen; "unix:/path" for a Unix socket',
    )
    process.add_argument(
        "--id", default="fairlead", metavar="NAME", help="name of the server in its metadata (fairlead)"
    )
    process.add_argument(
        "--revision",
        type=revision,
        metavar="NAME",
        help="name in the header fairlead-revision of every answer (none)",
    )
    _add_log_flags(parser.add_argument_group("log"))
    trace_options.add(parser.add_argument_group("traces"))
    return parser


def _log_settings(found: argparse.Namespace) -> LogSettings:
    return LogSettings(
        log_file=found.log_file,
        log_info=found.log_info,
        log_warning=found.log_warning,
        log_error=found.log_error,
        log_verbose_level=found.log_verbose,
        log_format=found.log_format,
    )


def _add_log_flags(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--log-verbose", type=count, default=0, metavar="LEVEL", help="1 logs one line per request (0)")
    for level in ("info", "warning", "error"):
        add_bool(group, f"--log-{level}", default=True, text=f"logs lines of level {level}")
    group.add_argument(
        "--log-format",
        choices=FORMATS,
        default=JSON if json_log.is_wanted(os.environ) else DEFAULT,
        help="default and ISO8601: how lines begin; json: lines are JSON objects (default, or "
        f"{json_log.VARIABLE}=json of the environment)",
    )
    group.add_argument("--log-file", default="", metavar="PATH", help="file to append the log to (standard error)")
