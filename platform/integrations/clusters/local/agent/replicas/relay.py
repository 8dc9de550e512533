"""Relay of one replica: its runtime reaches its payload logger and its collector only through it.

                 the replica is started            ends
    not there ----------------------------> Runs ---------> BackingOff
                                             ^  <-- waited -----'
                                             '---- close() ----> gone

The agent listens on the sockets and keeps them, so that connections wait while a relay is started. The replica sees the
folder with the sockets' files, and may change nothing in it.
"""

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.request import proxy_bypass

import httpx

from common.errors import FairleadError
from integrations.clusters.base import Logger
from integrations.clusters.flags import values_of
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.agent.sockets import folder_of, own_folder
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.files import Layout
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.holder.wire import FIRST_DESCRIPTOR
from integrations.clusters.local.runtime import inherited
from integrations.clusters.local.state_files import StateFiles
from integrations.relay import start
from integrations.relay.start import Target
from serving_runtime.shared import otlp
from serving_runtime.shared.egress import OTLP_URL, Network, networks

log = logging.getLogger(__name__)

_OPERATORS = networks("0.0.0.0/0,::/0,127.0.0.0/8,::/127")
"""Networks of a collector, whose URL is the operator's: all but metadata and other link-local addresses."""
_OPENTELEMETRY = "opentelemetry"
_LOGGER_FLAG = "--payload-logger-socket"
SUFFIX = ".relay"
"""Suffix of its program's name, after its replica's name."""
RELAYED = _LOGGER_FLAG
"""Flag in the --help of runtimes that can use a relay, for traces too."""


@dataclass(frozen=True, slots=True)
class Outlet:
    """One host that a runtime connects to through a socket.

    Attributes:
        name: of the socket.
        flag: the runtime's flag that takes the socket's path.
    """

    name: str
    flag: str
    target: Target


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Outgoing connections of a replica's runtime.

    Attributes:
        relayed: through a relay.
        direct: whether it posts anything by itself, for which it needs the machine's network.
    """

    relayed: tuple[Outlet, ...] = ()
    direct: bool = False


def outgoing(
    logger: Logger | None,
    runtime: Sequence[str],
    allowed: Sequence[Network],
    *,
    relays: bool,
    environ: Mapping[str, str] = os.environ,
) -> Outgoing:
    """Return the outgoing connections of a replica that the command `runtime` starts.

    Args:
        allowed: networks that may be reached although they are not public.
        relays: whether this machine and the runtime can use a relay.
        environ: whose proxies the runtime gets; traces that go through one are sent by the runtime itself.
    """
    traces = _traces_url(runtime, environ)
    if not relays:
        return Outgoing(direct=logger is not None or traces is not None)
    found = []
    if logger is not None and (target := _target(logger.url, allowed)) is not None:
        found.append(Outlet("logger", f"{_LOGGER_FLAG}=", target))
    direct = traces is not None and _has_proxy(traces, inherited(environ))
    if traces is not None and not direct and (target := _target(traces, [*allowed, *_OPERATORS])) is not None:
        found.append(Outlet("traces", f"--trace-config={_OPENTELEMETRY},socket=", target))
    return Outgoing(tuple(found), direct)


def _traces_url(runtime: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the URL to which a runtime sends spans, by its flags or the platform's setting; None without one."""
    settings = dict(value.partition("=")[::2] for value in values_of(runtime, "--trace-config"))
    endpoint = environ.get(otlp.VARIABLE, "")
    if "mode" not in settings and endpoint:
        return otlp.traces_url(endpoint)
    if settings.get("mode") != _OPENTELEMETRY:
        return None
    url = settings.get(f"{_OPENTELEMETRY},url", OTLP_URL)
    return url if "://" in url else f"http://{url}"


def _target(url: str, allowed: Sequence[Network]) -> Target | None:
    """Return host and port of a URL; None for an unusable one."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Target(parts.raw_host.decode("ascii"), port, tuple(allowed)) if parts.raw_host else None


def _has_proxy(url: str, environ: Mapping[str, str]) -> bool:
    """Return whether the environment names a proxy for a URL."""
    named = {name.lower(): value for name, value in environ.items() if value}
    proxies = {name.removesuffix("_proxy"): value for name, value in named.items() if name.endswith("_proxy")}
    scheme, _, rest = url.partition("://")
    if not (proxies.get(scheme) or proxies.get("all")):
        return False
    return not proxy_bypass(rest.partition("/")[0], proxies)


@dataclass(frozen=True, slots=True)
class Site:
    """Dependencies shared by all relays."""

    layout: Layout
    timing: Timing
    holder: Holder
    files: StateFiles


@dataclass(frozen=True, slots=True)
class EarlierRelay:
    """A relay of an earlier agent; `process` is None where it did not run."""

    process: Process | None


class Relay:
    """The sockets of a replica's outlets, and the process behind them."""

    def __init__(
        self, site: Site, replica: str, outlets: Sequence[Outlet], earlier: EarlierRelay | None = None
    ) -> None:
        """Listen and start it; raises OSError where that fails. Close it in any case.

        Args:
            replica: its name, unique among all of the agent's.
            earlier: the relay that an earlier agent left for a running replica.
        """
        self._site = site
        self._name = f"{replica}{SUFFIX}"
        self._outlets = outlets
        self._listeners: list[socket.socket] = []
        self._process = earlier.process if earlier else None
        # A replica that runs sees its folder, and finds new sockets there.
        self.folder = (
            folder_of(site.layout, f"{replica}/relay") if earlier else own_folder(site.layout, f"{replica}/relay")
        )
        try:
            if self._process is None:
                self._listen()
        except OSError:
            self._remove()
            raise
        self._life = asyncio.create_task(self._run(), name=self._name)

    @property
    def flags(self) -> list[str]:
        """Return the runtime's flags."""
        return [f"{outlet.flag}{self.folder / outlet.name}" for outlet in self._outlets]

    async def close(self) -> None:
        """End it, and remove its sockets."""
        self._life.cancel()
        await asyncio.wait({self._life})
        if self._process is not None:
            if self._process.running:
                await self._process.kill()  # it has nothing to finish: its replica has ended
            self._process.forget()
        self._remove()

    def _listen(self) -> None:
        for outlet in self._outlets:
            self._listeners.append(start.listening(self.folder / outlet.name))

    def _remove(self) -> None:
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                if self._process is None or not self._process.running:
                    if not self._listeners:  # those of an earlier agent ended with its relay
                        self._listen()
                    self._process = Process(
                        self._site.holder, self._program(), self._site.files, restarts=failures, message=""
                    )
                await self._process.ended()
                ending = f"ended with exit code {self._process.exit_code}"
            except (FairleadError, OSError) as error:
                ending = f"cannot be started: {error}"
            failures += 1
            wait_s = self._site.timing.backoff_s(failures)
            log.warning("relay %s %s; starting it again in %g s", self._name, ending, wait_s)
            await asyncio.sleep(wait_s)

    def _program(self) -> Program:
        routes = [(number, outlet.target) for number, outlet in enumerate(self._outlets, FIRST_DESCRIPTOR)]
        libraries = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
        return Program(
            command=start.command(routes),
            env={**libraries, "FAIRLEAD_HOME": str(self._site.layout.home)},
            log=self._site.layout.logs / f"{self._name}.log",
            record=self._site.layout.run / f"{self._name}.json",
            sandbox=start.sandbox(),
            limits=start.LIMITS,
            left_open=[listener.fileno() for listener in self._listeners],
        )
