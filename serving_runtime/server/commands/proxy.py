"""Command `proxy`: counts the requests to a container of the user's own, and answers for its health.

    fairlead-serve proxy --target_port=8080 --model_name=digits --protocol=v2
    fairlead-serve proxy --programs=FILE --http-address=fd:3 --grpc-address=fd:4 --metrics-address=fd:5 --model_name=m

It listens in the container's stead and forwards everything to 127.0.0.1, in the same pod. Its metrics are the
runtime's, so that rollouts and autoscaling work for any image. With `--programs` it starts what it forwards to.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from serving_runtime.common.errors import ServingError
from serving_runtime.proxy import options
from serving_runtime.proxy.options import ProxyOptions
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import (
    EVERYWHERE,
    INHERITED,
    UNIX,
    address,
    count,
    endpoint,
    port_number,
    positive,
    revision,
)
from serving_runtime.server.sockets import StartError, bind, place, write_port_file
from serving_runtime.shared import json_log
from serving_runtime.telemetry.log_settings import DEFAULT, JSON, LogControl, LogSettings


def main(arguments: Sequence[str]) -> int:
    """Run `proxy`; returns the exit code."""
    parser = _parser()
    found = parser.parse_args(arguments[1:])
    chosen = _options(parser, found)
    try:
        return serve(chosen) if found.programs is None else serve_programs(chosen, found)
    except ServingError as error:
        sys.stderr.write(f"fairlead-serve proxy: {error}\n")
        return 1


def serve(chosen: ProxyOptions) -> int:
    """Serve until terminated; returns the exit code. Raises StartError."""
    from serving_runtime.proxy import server  # noqa: PLC0415 - --help and bad flags answer before anything is loaded

    _open_log()
    http = bind(chosen.address, chosen.http_port, "http", flag="--http_port")
    metrics = bind(chosen.address, chosen.metrics_port, "metrics", flag="--metrics_port")
    places = {"http": place(http), "metrics": place(metrics)}

    def on_ready() -> None:
        if chosen.port_file is not None:
            write_port_file(chosen.port_file, places)

    try:
        return server.run(chosen, http, metrics, on_ready)
    except OSError as error:
        raise StartError(f"cannot listen on {chosen.address}: {error.strerror or error}; choose other ports") from error


def serve_programs(chosen: ProxyOptions, found: argparse.Namespace) -> int:
    """Run programs and serve until terminated; returns the exit code. Raises StartError and CannotStart."""
    from serving_runtime.proxy.programs import free_ports, plan, programs_file, replica  # noqa: PLC0415 - as above
    from serving_runtime.server import proxy_endpoints  # noqa: PLC0415 - as above

    try:
        programs = programs_file.read(found.programs)
    except programs_file.BadPrograms as error:
        sys.stderr.write(f"fairlead-serve proxy: --programs: {error}\n")
        return 2
    _open_log()
    asked = {name: _place(found, name) for name in proxy_endpoints.NAMES}
    with proxy_endpoints.opened(programs, asked) as endpoints:

        def on_ready() -> None:
            if chosen.port_file is not None:
                write_port_file(chosen.port_file, endpoints.places)

        planned = plan.planned(programs, chosen, free_ports.free_ports(), endpoints.runtimes)
        try:
            return replica.run(chosen, planned, endpoints.sockets, on_ready)
        except OSError as error:
            raise StartError(f"cannot listen: {error.strerror or error}; choose other addresses") from error


def _place(found: argparse.Namespace, endpoint: str) -> tuple[str, int]:
    """Return the address and port that the flags give an endpoint."""
    return getattr(found, f"{endpoint}_address") or found.address, getattr(found, f"{endpoint}_port")


def _open_log() -> None:
    wants_json = json_log.is_wanted(os.environ)
    LogControl(LogSettings(log_format=JSON if wants_json else DEFAULT)).open()
    if wants_json:
        json_log.log_uncaught()


def _options(parser: Parser, found: argparse.Namespace) -> ProxyOptions:
    _check_target(parser, found)
    if found.target_port in (found.http_port, found.metrics_port):
        parser.error(f"--target_port={found.target_port} is a port of the proxy itself; the container needs its own")
    if not found.model_name:
        parser.error("--model_name is empty; give the name in the paths of the container's model")
    return ProxyOptions(
        target_port=found.target_port or 0,
        model_name=found.model_name,
        protocol=found.protocol,
        health_path=found.health_path,
        address=found.address,
        http_port=found.http_port,
        metrics_port=found.metrics_port,
        port_file=found.port_file,
        max_input_bytes=found.http_max_input_size,
        max_concurrent_requests=found.max_concurrent_requests,
        exit_timeout_s=found.exit_timeout_secs,
        revision=found.revision,
    )


def _check_target(parser: Parser, found: argparse.Namespace) -> None:
    """Exit where the flags name neither or both of container and programs, or flags of the one beside the other."""
    if found.programs is None and found.target_port is None:
        parser.error("give --target_port of a container, or --programs to start")
    if found.programs is not None:
        if found.target_port is not None:
            parser.error(
                "--target_port does not go with --programs, whose ports the proxy chooses; leave one of them out"
            )
        addresses = [found.http_address, found.grpc_address, found.metrics_address]
        inherited = [each for each in addresses if each is not None and each.startswith((UNIX, INHERITED))]
        if twice := next((each for each in inherited if inherited.count(each) > 1), ""):
            parser.error(f"{twice} is the address of two endpoints; give each its own")
        return
    for name in ("http", "grpc", "metrics"):
        if getattr(found, f"{name}_address") is not None:
            parser.error(f"--{name}-address goes with --programs; in front of a container give --address")


def _path(text: str) -> str:
    if text and not re.fullmatch(r"/[!-~]*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no path: it begins with / and has no spaces")
    return text


def _target_port(text: str) -> int:
    found = port_number(text)
    if not found:
        raise argparse.ArgumentTypeError("'0' is no port that a container listens on; give one from 1 to 65535")
    return found


def _revision(text: str) -> str:
    return revision(text) if text else ""


def _parser() -> Parser:
    environment = os.environ
    parser = Parser(prog="fairlead-serve proxy", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--target_port", type=_target_port, metavar="N", help="port of the container at 127.0.0.1")
    parser.add_argument(
        "--programs",
        type=Path,
        metavar="FILE",
        help="starts the programs of this JSON file in place of a container, and removes the file",
    )
    name = environment.get("MODEL_NAME", "")
    parser.add_argument(
        "--model_name", required=not name, default=name, metavar="NAME", help="name of the model (MODEL_NAME)"
    )
    parser.add_argument(
        "--protocol",
        choices=options.PROTOCOLS,
        default=options.V2,
        help="protocol of the container, which decides its readiness check (v2)",
    )
    parser.add_argument(
        "--health_path",
        type=_path,
        default="",
        metavar="PATH",
        help="path of the container that answers 2xx once it is ready (the protocol's)",
    )
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        what = f"{name} of programs" if name == "grpc" else name
        parser.add_argument(
            f"--{name}_port",
            f"--{name}-port",
            type=port_number,
            default=port,
            metavar="N",
            help=f"port for {what} ({port})",
        )
        parser.add_argument(
            f"--{name}-address",
            type=endpoint,
            metavar="ADDRESS",
            help=f"address for {name} of programs; without a port unix:/path, or fd:N bound already (--address)",
        )
    parser.add_argument(
        "--address",
        type=address,
        default=EVERYWHERE,
        metavar="IP",
        help="address to listen on (::, all)",
    )
    parser.add_argument(
        "--port-file",
        "--port_file",
        type=Path,
        metavar="FILE",
        help="file for the ports, as JSON, once it listens",
    )
    parser.add_argument(
        "--http-max-input-size",
        type=positive,
        default=64 * 1024 * 1024,
        metavar="BYTES",
        help="largest body of a request (67108864)",
    )
    parser.add_argument(
        "--max-concurrent-requests",
        type=count,
        default=0,
        metavar="N",
        help="limits concurrent inference requests; ten times as many queue, in turns between callers; 0: no limit (0)",
    )
    parser.add_argument(
        "--exit-timeout-secs",
        type=count,
        default=30,
        metavar="N",
        help="maximum time to finish accepted requests after SIGTERM (30)",
    )
    parser.add_argument(
        "--revision",
        type=_revision,
        default=environment.get("FAIRLEAD_REVISION", ""),
        metavar="NAME",
        help="name in the header fairlead-revision of every answer (FAIRLEAD_REVISION)",
    )
    return parser
