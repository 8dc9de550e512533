"""TCP relay from Unix sockets to fixed hosts; bytes pass unchanged, TLS included.

    python -I -S program.py ROUTES_AS_JSON

    accept -> resolve, check the addresses (egress), connect -> carry both ways -> both have ended, or both are idle

Each route has a socket on which the starter listens already, one host and one port. Its `CONNECTIONS` threads accept
and carry one connection each; further ones wait. The name is resolved once per connection, which goes to a checked
address.
"""

import json
import select
import socket
import sys
import threading
import time

if __name__ == "__main__":
    sys.path.insert(0, json.loads(sys.argv[1])["packages"])

from serving_runtime.shared.egress import EgressRefusedError, networks, permitted

CONNECTIONS = 32
"""Concurrent connections of one route."""
CONNECT_S = 10.0
"""For all addresses of the host together."""
_CHUNK_BYTES = 1 << 16
_STACK_BYTES = 1 << 18


class Route:
    """One listening socket and where its connections lead.

    Args:
        allowed: networks that the host may be in although they are not public, separated by commas.
        idle_s: idle time of both sides after which a connection is closed.
    """

    def __init__(self, listener: socket.socket, host: str, port: int, *, allowed: str, idle_s: float) -> None:
        self._listener = listener
        self._host = host
        self._port = port
        self._allowed = networks(allowed)
        self._idle_s = idle_s
        self._problem = ""

    def serve(self) -> None:
        """Carry one connection after the other, forever."""
        while True:
            near, _ = self._listener.accept()
            with near:
                far = self.connected()
                if far is not None:
                    with far:
                        carry(near, far, idle_s=self._idle_s)

    def connected(self) -> socket.socket | None:
        """Connect to one of the addresses; returns None, and logs a line, where none can be reached."""
        deadline = time.monotonic() + CONNECT_S
        problem = ""
        try:
            # As bytes: Python would encode a name as IDNA, whose tables take longer to import than all of this.
            found = socket.getaddrinfo(self._host.encode("ascii"), self._port, type=socket.SOCK_STREAM)
            addresses = permitted(self._host, [str(entry[4][0]) for entry in found], self._allowed)
        except (EgressRefusedError, OSError) as error:
            addresses, problem = [], str(error)
        for address in addresses:
            try:
                far = _connection(address, self._port, max(0.1, deadline - time.monotonic()))
            except OSError as error:
                problem = f"{address}: {error.strerror or error}"
            else:
                self._report("")
                return far
        self._report(problem)
        return None

    def _report(self, problem: str) -> None:
        """Log a problem when it begins, changes and ends, not for each connection."""
        if problem != self._problem:
            self._problem = problem
            now = f"cannot be reached: {problem}" if problem else "is reached again"
            print(f"{self._host}:{self._port} {now}", file=sys.stderr, flush=True)  # noqa: T201 - the program's log


def _connection(address: str, port: int, timeout_s: float) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        found.settimeout(timeout_s)
        found.connect((address, port))
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        found.close()
        raise
    return found


class _Way:
    """One direction of a connection; it reads again once all it has read is written."""

    __slots__ = ("_held", "_sink", "_source", "ended")

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.ended = False
        self._source = source
        self._sink = sink
        self._held = memoryview(b"")

    @property
    def reads(self) -> bool:
        return not self.ended and not self._held

    @property
    def writes(self) -> bool:
        return bool(self._held)

    def move(self) -> None:
        """Read if nothing is buffered, and write what the sink takes; raises OSError where either side is gone."""
        try:
            if not self._held:
                self._held = memoryview(self._source.recv(_CHUNK_BYTES))
                self.ended = not self._held
            if self.ended:
                self._sink.shutdown(socket.SHUT_WR)
            else:
                self._held = self._held[self._sink.send(self._held) :]
        except BlockingIOError:
            return


def carry(near: socket.socket, far: socket.socket, *, idle_s: float) -> None:
    """Carry bytes both ways until both have ended, one side has gone, or both were idle for `idle_s`."""
    near.setblocking(False)
    far.setblocking(False)
    there, back = _Way(near, far), _Way(far, near)
    while not (there.ended and back.ended):
        waiting = (
            select.poll()
        )  # a socket of which nothing is wanted would be reported again and again once it has ended
        if there.reads or back.writes:
            waiting.register(near, select.POLLIN * there.reads | select.POLLOUT * back.writes)
        if back.reads or there.writes:
            waiting.register(far, select.POLLIN * back.reads | select.POLLOUT * there.writes)
        ready = dict(waiting.poll(idle_s * 1000))
        if not ready:
            return
        at_near, at_far = ready.get(near.fileno(), 0), ready.get(far.fileno(), 0)
        try:
            if (there.reads and at_near) or (there.writes and at_far):
                there.move()
            if (back.reads and at_far) or (back.writes and at_near):
                back.move()
        except OSError:
            return
        if there.ended and at_near & select.POLLHUP:
            return  # the near side reads no answer any more


def main() -> None:
    threading.stack_size(_STACK_BYTES)
    asked = json.loads(sys.argv[1])
    for given in asked["routes"]:
        listener = socket.socket(fileno=given["descriptor"])
        route = Route(listener, given["host"], given["port"], allowed=given["allowed"], idle_s=asked["idle_s"])
        for _ in range(CONNECTIONS):
            threading.Thread(target=route.serve).start()


if __name__ == "__main__":
    main()
