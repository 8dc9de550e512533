"""Listening sockets, bound before the models load so that a taken port is told at once, and the file with the ports."""

import json
import os
import socket
from pathlib import Path

from serving_runtime.errors import ServingError
from serving_runtime.protocol.grpc.server import GrpcServer
from serving_runtime.protocol.http.listener import Listener


class StartError(ServingError):
    """The server cannot start; the message is the one line the operator sees."""


def bind(address: str, port: int, flag: str, *, reuse_port: bool = False) -> socket.socket:
    """Return a bound TCP socket that does not listen yet; raises StartError naming the flag to change.

    Args:
        reuse_port: let other processes that say so too listen on the same port; the kernel shares connections out.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse_port:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        raise StartError(_cannot_listen(address, port, flag, error.strerror or str(error))) from error
    sock.setblocking(False)
    return sock


def bind_grpc(server: GrpcServer, address: str, port: int, *, reuse_port: bool) -> int:
    """Return the port the gRPC server is bound to; grpcio does not say why it failed, so a plain bind tries first."""
    if port:
        bind(address, port, "--grpc-port", reuse_port=reuse_port).close()
    try:
        return server.bind(address, port)
    except OSError as error:
        raise StartError(_cannot_listen(address, port, "--grpc-port", str(error))) from error


async def listen(listener: Listener, address: str, port: int, flag: str) -> None:
    """Start a listener; raises StartError when another process was quicker since the socket was bound."""
    try:
        await listener.start()
    except OSError as error:
        raise StartError(_cannot_listen(address, port, flag, error.strerror or str(error))) from error


def _cannot_listen(address: str, port: int, flag: str, reason: str) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"cannot listen on {host}:{port}: {reason}; choose another port with {flag}, or 0 for a free one"


def write_port_file(path: Path, ports: dict[str, int]) -> None:
    """Write the ports so that a reader sees all of them or none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(ports) + "\n")
        partial.replace(path)
    except OSError as error:
        raise StartError(f"--port-file {path} cannot be written: {error.strerror}") from error
