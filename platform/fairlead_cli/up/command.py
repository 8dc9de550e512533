"""`fairlead up`: prepare the home, start all components, print their addresses, stop all on Ctrl-C or SIGTERM.

    lock -> end leftovers -> ports free? -> limits of this machine
         -> start all, and beside them: migrate -> first token -> web and worker begin
         -> wait until ready -> watch -> stop

The process stays single-threaded and takes its signals with `sigtimedwait`: nothing runs in a handler.
"""

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.up import gateway_tls, limits, processes, readiness, records
from fairlead_cli.up.addresses import Address, parse, parse_origin, require_apart, require_free
from fairlead_cli.up.components import Inherited, components, environment, metrics_access
from fairlead_cli.up.home import Home, home_path, locked, prepare, write_endpoints
from fairlead_cli.up.installation import require_installed
from fairlead_cli.up.preparation import Preparation
from fairlead_cli.up.supervisor import Supervisor

_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_READY_WITHIN_S = 90.0
_LOOK_EVERY_S = 0.1
_WATCH_EVERY_S = 5.0
_MAX_LOG_BYTES = 20 * 2**20


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the embedded platform lives and listens."""
    parser.add_argument(
        "--home",
        type=Path,
        default=home_path(),
        help="folder for all state (FAIRLEAD_HOME, else .fairlead here or above)",
    )
    parser.add_argument(
        "--address",
        type=_address,
        default=Address("127.0.0.1", 8080),
        help="HOST:PORT of pages and API (127.0.0.1:8080)",
    )
    parser.add_argument(
        "--gateway-address",
        type=_address,
        default=Address("127.0.0.1", 8090),
        help="HOST:PORT of the gateway for inference requests (127.0.0.1:8090)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all options of `fairlead up`."""
    add_place_arguments(parser)
    parser.add_argument(
        "--public-url",
        type=_origin,
        metavar="URL",
        help="external URL of pages and API, such as https://HOST of a reverse proxy (that of --address)",
    )
    parser.add_argument(
        "--public-gateway-url",
        type=_origin,
        metavar="URL",
        help="external URL of the gateway for clients; shown on pages (that of --gateway-address)",
    )
    gateway_tls.add_arguments(parser)
    parser.add_argument(
        "--log-requests", action="store_true", help="replicas log one line per request, with its id and duration"
    )
    parser.add_argument(
        "--allow-python-models",
        action="store_true",
        help="runs models whose files are code, in the sandbox (FAIRLEAD_ALLOW_PYTHON_MODELS)",
    )


def run(call: Call) -> None:
    """Starts the whole platform here, without Docker or Kubernetes, and runs it until Ctrl-C."""
    options = call.options
    require_installed()
    home = prepare(options.home)
    with locked(home):
        if ended := records.end_leftovers(home):
            _say(f"ended what an earlier run had left behind: {', '.join(ended)}")
        require_free(options.address, "--address")
        require_free(options.gateway_address, "--gateway-address")
        require_apart(options.address, options.gateway_address)
        url = options.public_url or options.address.url
        tls = gateway_tls.settings(options, os.environ, home)
        own_gateway_url = options.gateway_address.url_of("https" if tls[gateway_tls.TLS] else "http")
        gateway_url = options.public_gateway_url or own_gateway_url
        allowed = options.allow_python_models
        access = "public" if options.gateway_address.is_loopback else "authenticated"
        variables = environment(
            home,
            url=url,
            gateway_url=gateway_url,
            access=access,
            metrics_access=metrics_access(home, options.address),
            allow_python_models=allowed,
        )
        variables |= tls
        certificate = gateway_tls.check(options.gateway_address, variables)
        if warning := gateway_tls.warning(options.gateway_address, variables, options.public_gateway_url):
            _say(warning)
        limits.raise_open_files()
        for close in limits.close_limits(home, variables):
            _say(f"close to a limit: {close}")
        _shorten_logs(home)
        prepared = Preparation(home, variables)
        channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parts = components(
            home,
            options.address,
            options.gateway_address,
            variables,
            Inherited(channel[0].detach(), channel[1].detach(), prepared.gate),
            log_requests=options.log_requests,
        )
        family = Supervisor(home, parts, _say, adopts=True)
        processes.adopt_orphans()
        with _signals_wait():
            start = _Start(family, prepared, options.address, options.gateway_address)
            try:
                prepared.begin()
                family.start()
                if start.until_ready():
                    write_endpoints(home, url=options.address.url, gateway_url=own_gateway_url)
                    _print_addresses(home, url, gateway_url, start.new_token, certificate)
                    _watch(family)
                _say("stopping (Ctrl-C again to hurry)")
            finally:
                home.endpoints.unlink(missing_ok=True)
                prepared.open_gate()
                family.stop(hurry=lambda: _stop_asked(0))
    _say("stopped")


class _Start:
    """The wait until all components are up, which reports each one."""

    def __init__(self, family: Supervisor, prepared: Preparation, address: Address, gateway: Address) -> None:
        self._family, self._prepared, self._address, self._gateway = family, prepared, address, gateway
        self._began_s = time.monotonic()
        self.new_token: str | None = None

    def until_ready(self) -> bool:
        """Return True when all are up, False when stopped before; CliError when a component does not come up."""
        _say(f"starting in {self._family.home.path}")
        # Ended processes are reaped afterwards: as an orphan the preparation would lose its exit code.
        while not self._prepared.is_over:
            if _stop_asked(_LOOK_EVERY_S):
                return False
        self.new_token = self._prepared.finish()
        self._report("the database is prepared")
        return self._until_all_answer()

    def _until_all_answer(self) -> bool:
        deadline = time.monotonic() + _READY_WITHIN_S
        waiting: list[str] = list(readiness.PARTS)
        while waiting:
            self._family.tick()
            self._require_no_restart()
            before, waiting = waiting, self._waiting()
            for part in before:
                if part not in waiting:
                    self._report(f"{part} answers")
            if waiting and time.monotonic() > deadline:
                raise CliError(
                    f"{' and '.join(waiting)} did not come up within {_READY_WITHIN_S:g} s; "
                    f"see {self._family.home.logs}"
                )
            if _stop_asked(_LOOK_EVERY_S if waiting else 0):
                return False
        return True

    def _waiting(self) -> list[str]:
        return readiness.waiting_for(self._family.home, self._address, self._gateway, self._family.children)

    def _require_no_restart(self) -> None:
        for child in self._family.children:
            if child.restarts:
                name = child.component.name
                raise CliError(
                    f"{name} {child.last_end} while starting; the end of {self._family.home.logs / name}.log:\n"
                    f"{readiness.last_lines(self._family.home, name)}"
                )

    def _report(self, what: str) -> None:
        _say(f"  {time.monotonic() - self._began_s:4.1f} s  {what}")


def _watch(family: Supervisor) -> None:
    while not _stop_asked(family.next_wake_s(_WATCH_EVERY_S)):
        family.tick()


def _stop_asked(timeout_s: float) -> bool:
    """Wait for a signal for at most `timeout_s`; True for a stop signal, False if a child ended or none came."""
    seen = signal.sigtimedwait(_STOPPING | {signal.SIGCHLD}, timeout_s)
    return seen is not None and seen.si_signo in _STOPPING


@contextmanager
def _signals_wait() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING | {signal.SIGCHLD})
    try:
        yield
    finally:
        while signal.sigtimedwait(_STOPPING | {signal.SIGCHLD}, 0) is not None:
            pass  # a late Ctrl-C needs nothing more: everything has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _print_addresses(home: Home, url: str, gateway_url: str, new_token: str | None, certificate: Sequence[str]) -> None:
    lines = [
        "Fairlead is up.",
        f"  pages and API  {url}",
        f"  models         {gateway_url}/serving/NAMESPACE/SERVICE/v2/...  (HTTP and gRPC)",
        *(f"  {label:13}  {text}" for label, text in zip(("certificate", ""), certificate, strict=False)),
        f"  logs           {home.logs}",
    ]
    # Into a terminal only: output in a file or a CI log stays there.
    if new_token and sys.stdout.isatty():
        lines.append(f"  API token      {new_token}  (shown once; kept in {home.token})")
        lines.append(f"  sign in        {url}/signin/#token={new_token}")
    else:
        lines.append(f"  API token      in {home.token}")
    _say("\n".join(lines))


def _shorten_logs(home: Home) -> None:
    """Rotate large logs, keeping one older file of each."""
    for path in home.logs.glob("*.log"):
        if path.stat().st_size > _MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))


def _say(text: str) -> None:
    with suppress(OSError):  # the disk that this goes to may be full
        print(text, file=sys.stdout, flush=True)


def _origin(text: str) -> str:
    try:
        return parse_origin(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _address(text: str) -> Address:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
