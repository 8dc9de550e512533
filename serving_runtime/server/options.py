"""The command line of the server, flags named as Triton names them. A flag that is not offered is refused by name."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from serving_runtime.backends import registry

DESCRIPTION = """Serve the models of a repository over the V2 protocol (HTTP, gRPC) with Prometheus metrics.

other commands:
  inspect MODEL_DIR --json   tell signature and platform of one model's folder
  profile MODEL_DIR --json   measure load time, memory, and latency per batch size
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    model_repository: tuple[Path, ...]
    http_address: str
    http_port: int
    grpc_address: str
    grpc_port: int
    metrics_address: str
    metrics_port: int
    allow_http: bool
    allow_grpc: bool
    allow_metrics: bool
    port_file: Path | None
    exit_on_error: bool
    strict_readiness: bool
    exit_timeout_s: int
    auto_complete: bool
    backend_config: dict[str, dict[str, str]]
    backend_directory: Path | None
    http_max_input_bytes: int
    log_verbose: int


class Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line, and ends with 1."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}; see --help\n")


def parse(arguments: Sequence[str]) -> Options:
    """Return the options; ends the process with one line and 1 where they are wrong."""
    parser = _parser()
    found = parser.parse_args(arguments)
    if not (found.allow_http or found.allow_grpc):
        parser.error("--allow-http and --allow-grpc are both false, which leaves nothing to serve")
    for backend, _, _ in found.backend_config:
        own = registry.own_file(backend, found.backend_directory)
        if backend not in registry.BUILT_IN and (own is None or not own.is_file()):
            known = ", ".join(registry.BUILT_IN)
            parser.error(f"--backend-config={backend}: there is no such backend; built in is {known}")
    return Options(
        model_repository=tuple(found.model_repository),
        http_address=found.http_address,
        http_port=found.http_port,
        grpc_address=found.grpc_address,
        grpc_port=found.grpc_port,
        metrics_address=found.metrics_address if found.metrics_address is not None else found.http_address,
        metrics_port=found.metrics_port,
        allow_http=found.allow_http,
        allow_grpc=found.allow_grpc,
        allow_metrics=found.allow_metrics,
        port_file=found.port_file,
        exit_on_error=found.exit_on_error,
        strict_readiness=found.strict_readiness,
        exit_timeout_s=found.exit_timeout_secs,
        auto_complete=not found.disable_auto_complete_config,
        backend_config=_by_backend(found.backend_config),
        backend_directory=found.backend_directory,
        http_max_input_bytes=found.http_max_input_size,
        log_verbose=found.log_verbose,
    )


def _parser() -> Parser:
    parser = Parser(
        prog="fairlead-serve",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_models(parser.add_argument_group("models"))
    _add_endpoints(parser.add_argument_group("endpoints"))
    process = parser.add_argument_group("process")
    process.add_argument(
        "--exit-timeout-secs",
        type=_count,
        default=30,
        metavar="N",
        help="longest time to finish accepted requests after SIGTERM (30)",
    )
    process.add_argument(
        "--port-file",
        type=Path,
        metavar="PATH",
        help='write {"http": n, "grpc": n, "metrics": n} here once all sockets listen',
    )
    process.add_argument("--log-verbose", type=_count, default=0, metavar="LEVEL", help="1 logs a line per request (0)")
    return parser


def _add_models(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--model-repository",
        "--model-store",
        action="append",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of models; may be given several times",
    )
    group.add_argument(
        "--model-control-mode",
        type=_control_mode,
        default="none",
        metavar="MODE",
        help="none: load all at start (none)",
    )
    _add_bool(group, "--exit-on-error", default=True, text="end when a model fails to load")
    _add_bool(group, "--strict-readiness", default=True, text="a model that failed to load makes the server not ready")
    _add_bool(
        group,
        "--disable-auto-complete-config",
        default=False,
        text="take config.pbtxt as it is, require it to be whole",
    )
    group.add_argument(
        "--backend-config",
        action="append",
        type=_backend_setting,
        default=[],
        metavar="BACKEND,KEY=VALUE",
        help="onnxruntime: default-max-batch-size (4), intra_op_thread_count (1), inter_op_thread_count (1)",
    )
    group.add_argument(
        "--backend-directory",
        type=Path,
        metavar="DIR",
        help="the operator's own backends: DIR/NAME/backend.py, imported when a model's config names it",
    )


def _add_endpoints(group: "argparse._ArgumentGroup") -> None:
    everywhere = "0.0.0.0"  # noqa: S104 - as Triton: a server serves
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        _add_bool(group, f"--allow-{name}", default=True, text=f"listen for {name}")
        group.add_argument(
            f"--{name}-address",
            default=None if name == "metrics" else everywhere,
            metavar="ADDRESS",
            help=f"address of the {name} endpoint ({'the HTTP one' if name == 'metrics' else everywhere})",
        )
        group.add_argument(
            f"--{name}-port",
            type=_port,
            default=port,
            metavar="PORT",
            help=f"port of the {name} endpoint, 0 for a free one ({port})",
        )
    group.add_argument(
        "--http-max-input-size",
        type=_positive,
        default=64 * 1024 * 1024,
        metavar="BYTES",
        help="largest request over HTTP or gRPC (67108864)",
    )


def _add_bool(group: "argparse._ArgumentGroup", flag: str, *, default: bool, text: str) -> None:
    group.add_argument(
        flag,
        type=_boolean,
        nargs="?",
        const=True,
        default=default,
        metavar="BOOL",
        help=f"{text} ({str(default).lower()})",
    )


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "1", "on"):
        return True
    if text.lower() in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number >= 0")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number >= 1")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 0 to 65535")
    return int(text)


def _control_mode(text: str) -> str:
    if text != "none":
        raise argparse.ArgumentTypeError(f"'{text}' is not supported; the only mode is none")
    return text


def _backend_setting(text: str) -> tuple[str, str, str]:
    backend, comma, setting = text.partition(",")
    key, equals, value = setting.partition("=")
    if not (backend and comma and key and equals):
        raise argparse.ArgumentTypeError(f"'{text}' is not BACKEND,KEY=VALUE")
    return backend, key, value


def _by_backend(settings: Sequence[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for backend, key, value in settings:
        found.setdefault(backend, {})[key] = value
    return found
