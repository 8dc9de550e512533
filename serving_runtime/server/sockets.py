"""Listening sockets, bound before the models load so that a used address fails at once, and the port file.

An address is of TCP (a host, with a port beside it), `unix:/path` for a Unix socket, or `fd:N` for a Unix socket that
the parent of this process has bound and left open, and whose file the process need not see. The port file lists the
addresses.

`::` is every address of IPv6 and of IPv4, whatever the machine's `bindv6only`; where the kernel has no IPv6, of IPv4.
Callers of IPv4 then have mapped addresses (`::ffff:192.0.2.1`), which `protocol.callers` reads as those of IPv4.
"""

import errno
import json
import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from serving_runtime.common.errors import ServingError
from serving_runtime.server.flags.types import EVERYWHERE, INHERITED, UNIX

if TYPE_CHECKING:  # the proxy binds sockets too, without what these import
    from serving_runtime.protocol.grpc.on_http2.server import Http2GrpcServer
    from serving_runtime.protocol.http.wire.listener import Listener

_LONGEST_PATH_BYTES = 107
"""Linux: unix(7), `sun_path` without its closing zero."""
_ANSWER_S = 1.0


class StartError(ServingError):
    """The server cannot start; the message is the one line the operator sees."""


@dataclass(frozen=True, slots=True)
class SocketFile:
    """The file of a Unix socket that this process has bound."""

    path: str
    inode: tuple[int, int]

    @classmethod
    def of(cls, address: str) -> "SocketFile | None":
        """Return the file of a socket bound at this address; None for addresses without a file."""
        if not address.startswith(UNIX):
            return None
        path = address.removeprefix(UNIX)
        return cls(path, _inode(path))

    def remove(self) -> None:
        """Remove it, unless another process has bound it since."""
        try:
            if _inode(self.path) == self.inode:
                os.unlink(self.path)  # noqa: PTH108 - no path object is at hand
        except FileNotFoundError:
            pass


def bind(address: str, port: int, name: str, *, reuse_port: bool = False, flag: str = "") -> socket.socket:
    """Return a bound socket that does not listen yet; raises StartError naming the flag to change.

    Args:
        name: of the endpoint, by which its flags begin.
        flag: of the port, where its name is another.
        reuse_port: other processes with the same setting may bind the port too; the kernel distributes connections.
    """
    if address.startswith(UNIX):
        sock = _bind_unix(address.removeprefix(UNIX), f"--{name}-address={address}")
    elif address.startswith(INHERITED):
        sock = _inherited(int(address.removeprefix(INHERITED)), f"--{name}-address={address}")
    else:
        sock = _bind_tcp(address, port, flag or f"--{name}-port", reuse_port=reuse_port)
    sock.setblocking(False)
    return sock


def place(sock: socket.socket) -> int | str:
    """Return the port a socket is bound to, or `unix:/path`."""
    name = sock.getsockname()
    return f"{UNIX}{name}" if sock.family == socket.AF_UNIX else int(name[1])


def is_shared_by_port(address: str) -> bool:
    """Return whether several processes share this address by binding the same port."""
    return not address.startswith((UNIX, INHERITED))


def _bind_tcp(address: str, port: int, flag: str, *, reuse_port: bool) -> socket.socket:
    try:
        sock = _tcp_socket(address)
    except OSError as error:
        raise StartError(_cannot_listen(address, port, flag, error.strerror or str(error))) from error
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse_port:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if sock.family == socket.AF_INET6 and address == EVERYWHERE:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        sock.bind(("" if sock.family == socket.AF_INET and address == EVERYWHERE else address, port))
    except OSError as error:
        sock.close()
        raise StartError(_cannot_listen(address, port, flag, error.strerror or str(error))) from error
    return sock


def _tcp_socket(address: str) -> socket.socket:
    """Return a socket of the address' family: of IPv4 for every address where the kernel has no IPv6."""
    if ":" in address:
        try:
            return socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT or address != EVERYWHERE:
                raise
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def _bind_unix(path: str, flag: str) -> socket.socket:
    """Return a socket bound to a path, for this user alone; one left by an ended server is replaced."""
    length = len(os.fsencode(path))
    if length > _LONGEST_PATH_BYTES:
        raise StartError(f"{flag}: the path has {length} bytes, and that of a Unix socket at most 107; shorten it")
    folder = Path(path).parent
    if not folder.is_dir():
        raise StartError(f"{flag}: there is no folder {folder}; make it, or choose another")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_way(path, flag)
        sock.bind(path)
        Path(path).chmod(0o600)  # in time: nothing listens yet
    except OSError as error:
        sock.close()
        raise StartError(f"{flag}: cannot listen there: {error.strerror or error}") from error
    except StartError:
        sock.close()
        raise
    return sock


def _make_way(path: str, flag: str) -> None:
    """Remove a socket that no process serves; raises StartError for anything else at the path."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise StartError(f"{flag}: there is a file that is no socket; choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
        attempt.settimeout(_ANSWER_S)
        try:
            attempt.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)  # noqa: PTH108 - as above
            return
        except TimeoutError:
            pass
    raise StartError(f"{flag}: another process listens there; end it, or choose another path")


def _inherited(number: int, flag: str) -> socket.socket:
    try:
        sock = socket.socket(fileno=number)
    except OSError as error:
        raise StartError(f"{flag}: no socket was left open there: {error.strerror or error}") from error
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM or not sock.getsockname():
        sock.detach()
        raise StartError(f"{flag}: what was left open there is no Unix socket that is bound")
    sock.set_inheritable(False)
    return sock


def bind_grpc(server: "Http2GrpcServer", address: str, port: int, *, reuse_port: bool) -> int | str:
    """Return the gRPC server's address; raises StartError naming the flag to change."""
    sock = bind(address, port, "grpc", reuse_port=reuse_port)
    server.take(sock)
    return place(sock)


async def listen(listener: "Listener", address: str, at: int | str, name: str) -> None:
    """Start a listener; raises StartError when another process has taken the address since the bind."""
    try:
        await listener.start()
    except OSError as error:
        raise StartError(_cannot_listen(address, at, f"--{name}-port", error.strerror or str(error))) from error


def _cannot_listen(address: str, at: int | str, flag: str, reason: str) -> str:
    if isinstance(at, str):
        return f"cannot listen on {at}: {reason}"
    host = f"[{address}]" if ":" in address else address
    return f"cannot listen on {host}:{at}: {reason}; choose another port with {flag}, or 0 for a free one"


def write_port_file(path: Path, places: Mapping[str, int | str]) -> None:
    """Write the address of each endpoint, atomically."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(dict(places)) + "\n")
        partial.replace(path)
    except OSError as error:
        raise StartError(f"--port-file {path} cannot be written: {error.strerror}") from error


def _inode(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
