"""Lifecycle of the proxy, as the runtime's: startup, serving, graceful shutdown. The room's way in.

    bind -> listen -> (port file) -> serve --SIGTERM--> not ready -> finish what was accepted -> exit 0

A second signal, or the exit timeout, ends the process at once with 1.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable

import uvloop

from serving_runtime.protocol import revision
from serving_runtime.proxy.applications import MetricsApplication, ProxyApplication
from serving_runtime.proxy.listener import ProxyListener
from serving_runtime.proxy.options import ProxyOptions, Targets

logger = logging.getLogger(__name__)

_LAST_ACCEPT_S = 0.02
"""Delay between not ready and closing the sockets: the kernel's accepted connections are still served."""

_SWEEP_S = 1.0


class ProxyServer:
    """The two ports of the proxy.

    Args:
        http, metrics: bound sockets; without the second one the metrics are another server's.
        targets: what it forwards to; by default the container of the options.

    Attributes:
        abandon: called before a second signal ends the process.
        stopping_since: when it began to drain, by the loop's time; None before.
    """

    def __init__(
        self,
        options: ProxyOptions,
        http: socket.socket,
        metrics: socket.socket | None,
        targets: Targets | None = None,
    ) -> None:
        self.abandon: Callable[[], None] = lambda: None
        self.stopping_since: float | None = None
        self._options = options
        self._application = ProxyApplication(options, targets or Targets.of_container(options))
        own_headers = revision.header_line(options.revision)
        self._http = ProxyListener(self._application, http, options, own_headers)
        self._metrics = None
        if metrics is not None:
            self._metrics = ProxyListener(MetricsApplication(self._application.counts), metrics, options)
        self._stop = asyncio.Event()
        self._signalled = False
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; raises OSError."""
        await self._http.start()
        if self._metrics is not None:
            await self._metrics.start()
        self._sweep()

    async def serve(self) -> int:
        """Serve until a signal; returns the exit code."""
        await self._stop.wait()
        timeout_s = self._options.exit_timeout_s
        logger.info("stopping: %d requests in flight, at most %d s to finish them", self._http.busy, timeout_s)
        exit_code = 0
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(_LAST_ACCEPT_S)
                await self._http.drain()
        except TimeoutError:
            if self._http.busy:
                logger.error("exit timeout of %d s is over, %d requests unfinished", timeout_s, self._http.busy)
                exit_code = 1
        self.close()
        logger.info("stopped")
        return exit_code

    def close(self) -> None:
        """End both ports and all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._http.abort()
        if self._metrics is not None:
            self._metrics.abort()
        self._application.close()

    def stop(self) -> None:
        """Begin to drain, for a signal; called again, end the process."""
        if self._signalled:
            self.abandon()
            sys.stderr.write("fairlead-serve proxy: second stop signal, exiting immediately\n")
            sys.stderr.flush()
            os._exit(1)
        self._signalled = True
        self.begin_to_drain()

    def begin_to_drain(self) -> None:
        """Be no longer ready, and end `serve` once the requests in flight are answered."""
        if self._stop.is_set():
            return
        self.stopping_since = asyncio.get_running_loop().time()
        self._application.draining = self._http.draining = True
        self._stop.set()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._application.sweep(loop.time())
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep)


def run(options: ProxyOptions, http: socket.socket, metrics: socket.socket, on_ready: Callable[[], None]) -> int:
    """Serve until terminated; returns the exit code. `on_ready` is called once both ports listen.

    Raises OSError where a port was taken since it was bound.
    """

    async def serve() -> int:
        server = ProxyServer(options, http, metrics)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        await server.start()
        on_ready()
        return await server.serve()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve())
