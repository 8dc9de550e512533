"""The local installation's Envoy with as much of an agent as configures it: started with its flags, configured once."""

import asyncio
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving.processes import SERVER_CORE, Process, free_ports
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.agent.gateway.envoy_process import envoy_command
from integrations.clusters.local.agent.gateway.routing import Router, Routing
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.overload import MAX_HEAP_BYTES
from integrations.clusters.local.files import write_json

_PATIENCE_S = 60.0
_SERVED: list[Discovery] = []  # nobody else keeps them from being collected


def start(
    routing: Routing,
    folder: Path,
    *,
    cores: str = SERVER_CORE,
    flags: Sequence[str] = (),
    max_heap_bytes: int = MAX_HEAP_BYTES,
    left_out: Collection[str] = (),
) -> tuple[Process, int]:
    """Start Envoy with its files in a new `folder`; returns it, and its port, once it routes by `routing`.

    Args:
        left_out: names of HTTP filters that its listener is to lack.

    Raises:
        Unavailable: Envoy refuses something; the message is its own.
    """
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    started = bootstrap(
        agent_socket=str(folder / "xds.sock"),
        host="127.0.0.1",
        port=port,
        admin_socket=str(folder / "admin.sock"),
        started_at=f"{time.time():.3f}",
        max_heap_bytes=max_heap_bytes,
        access_log=str(folder / "access.log"),
    )
    _leave_out(started, left_out)
    write_json(folder / "bootstrap.json", started)
    process = Process([*envoy_command(folder), *flags], folder / "envoy.log", cores=cores)
    loop = asyncio.new_event_loop()
    # As long as this program: an Envoy that looks for its agent again and again costs what an installation's does not.
    threading.Thread(target=loop.run_forever, name="discovery", daemon=True).start()
    try:
        _SERVED.append(asyncio.run_coroutine_threadsafe(_configured(folder / "xds.sock", routing), loop).result())
    except BaseException:
        process.stop()
        raise
    return process, port


def _leave_out(part: Any, names: Collection[str]) -> None:
    """Remove the HTTP filters of these names, wherever they are in the configuration."""
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _leave_out(each, names)
    if isinstance(part, dict) and "http_filters" in part:
        part["http_filters"] = [each for each in part["http_filters"] if each["name"] not in names]


async def _configured(socket: Path, routing: Routing) -> Discovery:
    discovery = Discovery(socket)
    await discovery.start()
    await Router(discovery, patience_s=_PATIENCE_S).push(routing)
    return discovery
