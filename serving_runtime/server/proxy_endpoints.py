"""Endpoints of the command `proxy` with programs: which process listens on each.

http      the proxy
metrics   a predictor that is the runtime; else the proxy
grpc      a transformer, through the proxy's relay; else a predictor that is the runtime; else none
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from serving_runtime.proxy.programs.plan import Endpoint
from serving_runtime.proxy.programs.programs_file import Programs
from serving_runtime.proxy.programs.replica import Sockets
from serving_runtime.server.flags.types import INHERITED, UNIX
from serving_runtime.server.sockets import SocketFile, bind, place

NAMES = HTTP, GRPC, METRICS = ("http", "grpc", "metrics")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a replica of programs listens.

    Attributes:
        sockets: of this process.
        runtimes: handed over to the runtime.
        places: of all, for the port file.
    """

    sockets: Sockets
    runtimes: Sequence[Endpoint]
    places: Mapping[str, int | str]


@contextmanager
def opened(programs: Programs, asked: Mapping[str, tuple[str, int]]) -> Iterator[Endpoints]:
    """Give the endpoints, bound; raises StartError naming the flag to change.

    The files of Unix sockets that are bound here are removed at the end.

    Args:
        asked: address and port, by the names of `NAMES`.
    """
    handed: set[str] = set()
    if programs.predictor.is_runtime:
        handed = {METRICS} if programs.transformer is not None else {METRICS, GRPC}
    bound: dict[str, socket.socket] = {}
    places: dict[str, int | str] = {}
    runtimes: list[Endpoint] = []
    inherited: list[socket.socket] = []
    reserved: list[socket.socket] = []
    with ExitStack() as stack:
        for name in NAMES:
            address, port = asked[name]
            if name in handed and address.startswith(UNIX):
                places[name] = address
                runtimes.append(Endpoint((f"--{name}-address={address}",)))
                continue
            sock = stack.enter_context(bind(address, port, name))
            places[name] = place(sock)
            if file := SocketFile.of(address):
                stack.callback(file.remove)
            if name not in handed:
                bound[name] = sock
            elif address.startswith(INHERITED):
                inherited.append(sock)
                runtimes.append(Endpoint((f"--{name}-address={INHERITED}{sock.fileno()}",), (sock.fileno(),)))
            else:  # the runtime binds the port itself
                reserved.append(sock)
                runtimes.append(Endpoint((f"--{name}-address={address}", f"--{name}-port={places[name]}")))
        own = Sockets(bound[HTTP], bound.get(METRICS), bound.get(GRPC), inherited, reserved)
        yield Endpoints(own, runtimes, places)
