"""Lifecycle of a replica of programs: the proxy and its children begin and end together. The folder's way in.

    start children -> listen -> (port file) -> serve --SIGTERM--> not ready -> finish what was accepted
                                                 |                               -> end the children -> exit 0
                                                 `--a child ends--> the same -> exit with the child's code

All of the end takes the exit timeout at most, and a moment more where programs ignore SIGTERM.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import uvloop

from serving_runtime.proxy.options import ProxyOptions
from serving_runtime.proxy.programs.byte_relay import ByteRelay
from serving_runtime.proxy.programs.children import Children, Ending
from serving_runtime.proxy.programs.guard import Guard
from serving_runtime.proxy.programs.plan import Plan
from serving_runtime.proxy.server import ProxyServer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sockets:
    """Bound sockets of a replica.

    Attributes:
        metrics: None where the runtime has it.
        grpc: None where the runtime has it. Without a transformer nothing listens on it: clients are refused.
        handed_over: of the runtime; the copies here are closed once it has started.
        reserved: on ports that the runtime binds itself; closed just before it starts.
    """

    http: socket.socket
    metrics: socket.socket | None = None
    grpc: socket.socket | None = None
    handed_over: Sequence[socket.socket] = ()
    reserved: Sequence[socket.socket] = ()


def run(options: ProxyOptions, plan: Plan, sockets: Sockets, on_ready: Callable[[], None]) -> int:
    """Serve until terminated; returns the exit code. `on_ready` is called once all endpoints here listen.

    Raises CannotStart for a program, and OSError where an address was taken since it was bound.
    """
    with closing(Guard()) as guard, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(options, plan, sockets, on_ready, Children(guard)))


async def _serve(
    options: ProxyOptions, plan: Plan, sockets: Sockets, on_ready: Callable[[], None], children: Children
) -> int:
    loop = asyncio.get_running_loop()
    server = ProxyServer(options, sockets.http, sockets.metrics, plan.targets)
    server.abandon = children.kill
    relay = ByteRelay(sockets.grpc, plan.grpc_port) if sockets.grpc is not None and plan.grpc_port else None
    watching: asyncio.Task[Ending] | None = None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    try:
        for sock in sockets.reserved:
            sock.close()
        await children.start(plan.children)
        for sock in sockets.handed_over:
            sock.close()
        watching = asyncio.create_task(_watch(children, server))
        await server.start()
        if relay is not None:
            await relay.start()
        on_ready()
        exit_code = await server.serve()
        ending = watching.result() if watching.done() else None
    finally:
        if watching is not None:
            watching.cancel()
        if relay is not None:
            relay.stop_accepting()
        since = loop.time() if server.stopping_since is None else server.stopping_since
        await children.end(since + options.exit_timeout_s)
        if relay is not None:
            relay.close()
        server.close()
    if ending is None:
        return exit_code
    logger.error("%s", ending)
    return ending.exit_code


async def _watch(children: Children, server: ProxyServer) -> Ending:
    """Return how the first child ended by itself, and begin to end the others."""
    ending = await children.first_ending()
    server.begin_to_drain()
    return ending
