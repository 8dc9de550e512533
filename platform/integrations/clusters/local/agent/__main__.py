"""Entry point of the local agent, started by `fairlead up`.

    python -m integrations.clusters.local.agent --home .fairlead --gateway-address 127.0.0.1:8090

Runs until SIGTERM or SIGINT, then drains and ends everything it started and exits 0. Exit code 1 with one line where it
cannot start: a taken port, another agent in the same folder.
"""

import argparse
import asyncio
import fcntl
import logging
import os
import shlex
import signal
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

from common.errors import InvalidInput
from common.programs import SETTING as PROGRAM_FOLDERS
from common.programs import parse_folders
from integrations.clusters.local.agent.adoption import Earlier
from integrations.clusters.local.agent.agent import Agent, Settings
from integrations.clusters.local.agent.gateway.envoy_admin import admin_socket
from integrations.clusters.local.agent.gateway.envoy_process import PortTakenError, claim_address
from integrations.clusters.local.agent.replicas.memory_limit import Limit, MemoryPolicy
from integrations.clusters.local.agent.replicas.replica_memory import find_groups
from integrations.clusters.local.agent.sockets import replicas_folder
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.files import Layout
from integrations.clusters.local.holder.client import Holder, HolderGoneError
from integrations.clusters.local.pid_files import end_leftovers
from integrations.clusters.local.runtime import RUNTIME
from integrations.clusters.local.tls import BadCertificateError, GatewayTls
from serving_runtime.shared import json_log, otlp
from serving_runtime.shared.egress import Network, networks

log = logging.getLogger("fairlead.agent")

_TIMINGS = ", ".join(each.name for each in fields(Timing))


# The second is the earlier name of the first.
_EGRESS_VARIABLES = ("FAIRLEAD_EGRESS_ALLOWED_NETWORKS", "FAIRLEAD_WEBHOOK_ALLOWED_NETWORKS")


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code."""
    options = _parse(arguments)
    _open_log()
    if endpoint := os.environ.get(otlp.VARIABLE):
        try:
            otlp.traces_url(endpoint)
        except ValueError as error:
            return _refuse(f"{otlp.VARIABLE} {error}")
    layout = Layout(options.home.absolute() / "cluster")
    layout.cluster.mkdir(parents=True, exist_ok=True)
    lock = os.open(layout.cluster / ".agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _refuse(f"an agent already runs in {layout.home}; end it first or choose another folder with --home")
    timing = replace(Timing(), **dict(options.timing))
    try:
        holder = Holder.at(options.holder) if options.holder is not None else None
        earlier = Earlier.of(holder) if holder is not None else Earlier()
    except (HolderGoneError, OSError) as error:
        return _refuse(f"--holder {options.holder}: {error}")
    ended = end_leftovers(layout.run, patience_s=timing.exit_s, spare=earlier.programs)
    if ended:
        log.info("ended what an earlier agent left running: %s", ", ".join(ended))
    host, _, port = options.gateway_address.rpartition(":")
    runtime = tuple(shlex.split(options.runtime))
    try:
        admin_socket(layout)
        replicas_folder(layout)
        tls = GatewayTls.of(os.environ, home=layout.home, host=host.strip("[]"))
        if tls is not None and not earlier.gateway_runs:
            tls.read(datetime.now(UTC))
        port_number = earlier.port(host, int(port)) or claim_address(host, int(port))
    except (BadCertificateError, PortTakenError, OSError) as error:
        return _refuse(str(error))
    memory = MemoryPolicy(options.memory_limit, options.memory_reserve_mib)
    # In its own cgroup of version 2, the agent has to be alone when it makes others.
    groups, limited = find_groups(layout.cluster, spare=earlier.groups)
    holder = holder or Holder.started()
    settings = Settings(
        layout,
        host,
        port_number,
        holder,
        groups=groups,
        limited=limited,
        earlier=earlier,
        timing=timing,
        runtime=runtime,
        egress_allowed=options.egress_allowed_networks,
        memory=memory,
        tls=tls,
        program_folders=options.program_folders,
    )
    try:
        asyncio.run(_run(settings))
    finally:
        holder.close()
    return 0


def _open_log() -> None:
    if json_log.is_wanted(os.environ):
        handler = logging.StreamHandler()
        handler.setFormatter(json_log.JsonFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[handler])
        json_log.log_uncaught()
    else:
        logging.basicConfig(level=logging.INFO, format="{asctime} {levelname} {name} {message}", style="{")
    logging.getLogger("httpx").setLevel(logging.WARNING)


async def _run(settings: Settings) -> None:
    try:
        await _until_stopped(settings)
    except Exception:
        log.exception("the agent fails; what it started goes on while the holder does")
        os._exit(1)


async def _until_stopped(settings: Settings) -> None:
    stop = asyncio.Event()
    held_by = os.pidfd_open(settings.holder.pid)
    asyncio.get_running_loop().add_reader(held_by, _leave)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Agent(settings).run(stop)
    asyncio.get_running_loop().remove_reader(held_by)
    os.close(held_by)


def _leave() -> None:
    """End at once: all processes of this agent have ended with the holder."""
    log.critical("the holder has ended, and Envoy and the replicas with it")
    os._exit(1)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integrations.clusters.local.agent", description="The local agent.")
    parser.add_argument("--home", type=Path, default=Path(".fairlead"), help="folder with the platform's state")
    parser.add_argument("--gateway-address", default="127.0.0.1:8090", help="host:port clients send requests to")
    parser.add_argument("--runtime", default=shlex.join(RUNTIME), help="command that starts a serving runtime")
    parser.add_argument(
        "--holder",
        type=int,
        metavar="DESCRIPTOR",
        help="channel to the holder, in which what this agent starts outlives it (one that ends with the agent)",
    )
    parser.add_argument(
        "--timing", type=_timing, action="append", default=[], metavar="NAME=SECONDS", help="change one of: " + _TIMINGS
    )
    parser.add_argument(
        "--egress-allowed-networks",
        type=_networks,
        default=next(filter(None, map(os.environ.get, _EGRESS_VARIABLES)), ""),
        metavar="NETWORKS",
        help="networks that payload loggers may be in although they are not public, such as 10.0.0.0/8 "
        f"({_EGRESS_VARIABLES[0]})",
    )
    parser.add_argument(
        "--program-folders",
        type=_folders,
        default=os.environ.get(PROGRAM_FOLDERS, ""),
        metavar="FOLDERS",
        help=f"folders, separated by colons, in which each folder is a program that may run ({PROGRAM_FOLDERS})",
    )
    parser.add_argument(
        "--memory-limit",
        type=_memory_limit,
        metavar="|".join(Limit),
        default=os.environ.get("FAIRLEAD_MEMORY_LIMIT") or Limit.MACHINE,
        help="the memory of one replica: what the machine has but for the reserve, or what its revision requests "
        "(FAIRLEAD_MEMORY_LIMIT)",
    )
    parser.add_argument(
        "--memory-reserve-mib",
        type=_mebibytes,
        default=os.environ.get("FAIRLEAD_MEMORY_RESERVE_MIB") or None,
        metavar="MIB",
        help="of the machine's memory, what replicas leave to everything else (a tenth, at most 1024; "
        "FAIRLEAD_MEMORY_RESERVE_MIB)",
    )
    options = parser.parse_args(arguments)
    host, _, port = options.gateway_address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        parser.error(f"--gateway-address is {options.gateway_address!r}; expected HOST:PORT, such as 127.0.0.1:8090")
    return options


def _timing(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if not hasattr(Timing(), name):
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {_TIMINGS}")
    return name, type(getattr(Timing(), name))(value)


def _memory_limit(text: str) -> Limit:
    try:
        return Limit(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(Limit)}") from None


def _mebibytes(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of MiB, such as 1024")
    return int(text) << 20


def _folders(text: str) -> tuple[Path, ...]:
    try:
        return parse_folders(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(error.message) from error


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return networks(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; expected networks such as 10.0.0.0/8,fd00::/8") from error


def _refuse(sentence: str) -> int:
    print(f"fairlead agent: {sentence}", file=sys.stderr)  # noqa: T201 - a command line's answer
    return 1


if __name__ == "__main__":
    sys.exit(main())
