"""Exec plugins of kubeconfigs (client.authentication.k8s.io): programs that print a short-lived token.

Called by the API clients for each request; a token is kept in the process until shortly before it ends. A program
gets no shell, no terminal, none of the control plane's own variables, and only so much time and output.
"""

import json
import os
import selectors
import signal
import stat
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, cast

from common.errors import FairleadError, Unavailable
from integrations.clusters.kubernetes.access import ExecPlugin

TIME_LIMIT_S = 10.0
MOST_BYTES = 1 << 18
_MOST_STDERR_BYTES = 1 << 12
_MOST_KEPT = 256
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON = frozenset(
    {"HOME", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}
    | {"https_proxy", "http_proxy", "no_proxy"}
)
_PASSED_ON_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_")
"""Variables of the clouds' workload identities, which their webhooks set in pods."""
_LONGEST_WITHOUT_END = timedelta(minutes=10)
_MARGIN = timedelta(minutes=2)
_FAILURE_S = 10.0
"""How long a failure is remembered, and how long a new token is kept even if the server refuses it."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a plugin printed; `expires_at` is None where it names no end."""

    text: str = field(repr=False)
    issued_at: datetime
    expires_at: datetime | None

    @property
    def renew_at(self) -> datetime:
        """Return when to run the plugin again: two minutes before the end, or at 4/5 of a shorter life."""
        if self.expires_at is None:
            return self.issued_at + _LONGEST_WITHOUT_END
        return self.expires_at - min(_MARGIN, (self.expires_at - self.issued_at) / 5)


class _Kept:
    """The last token or failure of one plugin; its lock lets one thread run the plugin while others wait."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.token: Token | None = None
        self.failure: tuple[float, str] | None = None


_kept: dict[ExecPlugin, _Kept] = {}
_keeping = threading.Lock()


def token_of(plugin: ExecPlugin) -> Token:
    """Return the plugin's token, from a run of it where none is kept; raises Unavailable."""
    with _keeping:
        if plugin not in _kept and len(_kept) >= _MOST_KEPT:
            _kept.clear()
        kept = _kept.setdefault(plugin, _Kept())
    with kept.lock:
        if kept.token is not None and datetime.now(UTC) < kept.token.renew_at:
            return kept.token
        if kept.failure is not None and time.monotonic() < kept.failure[0]:
            raise Unavailable(kept.failure[1])
        try:
            kept.token, kept.failure = _run(plugin), None
        except FairleadError as error:
            kept.failure = time.monotonic() + _FAILURE_S, error.message
            raise
        return kept.token


def known_token(plugin: ExecPlugin) -> Token | None:
    """Return the token that this process got last; runs nothing."""
    kept = _kept.get(plugin)
    return None if kept is None else kept.token


def forget(plugin: ExecPlugin) -> None:
    """Have the plugin run again: the server refuses its token. One that is seconds old stays."""
    kept = _kept.get(plugin)
    if kept is None:
        return
    with kept.lock:
        if kept.token is not None and datetime.now(UTC) - kept.token.issued_at > timedelta(seconds=_FAILURE_S):
            kept.token = None


def _run(plugin: ExecPlugin) -> Token:
    _check_program(plugin)
    try:
        process = subprocess.Popen(
            [plugin.command, *plugin.args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=_environment(plugin),
            process_group=0,
        )
    except (OSError, ValueError) as error:
        raise _failed(plugin, f"cannot be started: {error}") from error
    try:
        output, complaint = _read(plugin, process)
    finally:
        code = _ended(process)
    if code != 0:
        why = _printable(complaint)
        raise _failed(plugin, f"ended with exit code {code}" + (f": {why}" if why else ""))
    return _parse(plugin, output)


def _check_program(plugin: ExecPlugin) -> None:
    """Raise Unavailable where the program is missing, or where any user of the machine may replace it."""
    try:
        found = Path(plugin.command).stat()
    except (OSError, ValueError) as error:
        raise _failed(plugin, "cannot be found; mount it into web, worker and watcher") from error
    if not stat.S_ISREG(found.st_mode) or found.st_mode & stat.S_IWOTH:
        raise _failed(plugin, "is not a file that only its owner and group may write; correct its mode")


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    passed_on = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        known = plugin.cluster
        authority = b64encode(known.authority.encode()).decode()
        given = {"server": known.server, "tls-server-name": known.server_name, "certificate-authority-data": authority}
        spec["cluster"] = {name: value for name, value in given.items() if value}
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return {**passed_on, "PATH": _PATH, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _read(plugin: ExecPlugin, process: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """Return what the program printed and complained once it has ended, within time and size."""
    deadline = time.monotonic() + TIME_LIMIT_S
    output, complaint = bytearray(), bytearray()
    end = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as ready:
            ready.register(cast(IO[bytes], process.stdout), selectors.EVENT_READ, output)
            ready.register(cast(IO[bytes], process.stderr), selectors.EVENT_READ, complaint)
            ready.register(end, selectors.EVENT_READ)
            while ready.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _failed(plugin, f"did not print a token and end within {TIME_LIMIT_S:g} s")
                for key, _ in ready.select(left):
                    chunk = b"" if key.fd == end else os.read(key.fd, 1 << 14)
                    if not chunk:
                        ready.unregister(key.fileobj)
                    elif key.data is output:
                        output += chunk
                        if len(output) > MOST_BYTES:
                            raise _failed(plugin, f"printed more than {MOST_BYTES >> 10} KiB; a token is shorter")
                    else:
                        complaint[:] = (complaint + chunk)[-_MOST_STDERR_BYTES:]
    finally:
        os.close(end)
    return bytes(output), bytes(complaint)


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """End the program's whole group and close its pipes; returns the program's exit code.

    The program is not waited for before, so that its number is still its own.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdout, process.stderr):
        cast(IO[bytes], pipe).close()
    return process.wait()


def _parse(plugin: ExecPlugin, output: bytes) -> Token:
    try:
        found = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise _failed(plugin, "printed no JSON; expected an ExecCredential") from error
    status = found.get("status") if isinstance(found, Mapping) else None
    if not isinstance(status, Mapping) or found.get("kind") != "ExecCredential":
        raise _failed(plugin, "printed no ExecCredential with a status")
    if found.get("apiVersion") != plugin.api_version:
        raise _failed(plugin, f"printed another apiVersion than {plugin.api_version}, which the kubeconfig names")
    token = status.get("token")
    if not token and status.get("clientCertificateData"):
        raise _failed(plugin, "printed a client certificate; only tokens are taken")
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
        raise _failed(plugin, "printed no token of printable characters in status.token")
    now, end = datetime.now(UTC), status.get("expirationTimestamp")
    expires_at = None if end is None else _moment(plugin, end)
    if expires_at is not None and expires_at <= now:
        raise _failed(plugin, f"printed a token that ended at {expires_at:%Y-%m-%d %H:%M:%S} UTC")
    return Token(token, now, expires_at)


def _moment(plugin: ExecPlugin, text: object) -> datetime:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
        if found is not None and found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _failed(plugin, "printed an expirationTimestamp that is no time such as 2026-01-31T12:00:00Z")


def _printable(text: bytes) -> str:
    """Return the last line, shortened, without control characters."""
    lines = text.decode(errors="replace").strip().splitlines()
    return "".join(each if each.isprintable() else "?" for each in lines[-1])[:200] if lines else ""


def _failed(plugin: ExecPlugin, what: str) -> Unavailable:
    return Unavailable(f"the exec plugin {plugin.command} {what}")
