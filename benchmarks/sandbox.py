"""What the sandbox costs a replica: processor time of a small request, and time and processor time of a start.

    python -m benchmarks.sandbox [--rounds 10] [--requests 20000]

Two agents of this machine, one with FAIRLEAD_SANDBOX=off and one with best, each with a replica of a small ONNX model.
In each round each sends the replica requests over HTTP and then starts it again; the order changes from round to round.
The replica's address is read from the file that it writes: a port, or `unix:/path`.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from integrations.sandbox import ability
from integrations.sandbox.command import VARIABLE
from integrations.sandbox.policy import Mode
from tests.integrations._support.runtimes import RUNTIME, Cluster, infer_json

MODES = (Mode.OFF, Mode.BEST)
PATIENCE_S = 60.0
_LOOK_S = 0.002
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_UNIX = "unix:"
Found = TypeVar("Found")


@dataclass
class Measured:
    """The figures of one mode, one a round."""

    request_us: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    start_cpu_s: list[float] = field(default_factory=list)


class Replica:
    """A replica that an agent of its own keeps going."""

    def __init__(self, home: Path, mode: Mode) -> None:
        self.measured = Measured()
        self._cluster = Cluster(home)
        self._starts = 0
        self._mode = mode

    @contextmanager
    def running(self) -> Iterator["Replica"]:
        """Run it until the block ends."""
        os.environ[VARIABLE] = self._mode
        self._cluster.start(runtime=RUNTIME.replace("python -m", "python -I -m"))
        try:
            self._start()
            yield self
        finally:
            self._cluster.close()

    def measure(self, requests: int) -> None:
        """Send requests, then start it again."""
        pid, address = self._process()
        with connected(address) as connection:
            send(connection, requests // 10)
            before_ns = cpu_ns(pid)
            send(connection, requests)
            self.measured.request_us.append((cpu_ns(pid) - before_ns) / requests / 1000)
        self._start()

    def _start(self) -> None:
        """Start it in the place of the one that runs, and note what that took until it was ready."""
        earlier = set(self._ports())
        self._starts += 1
        self._cluster.apply(self._starts, self._cluster.revision(1, 100, restart_number=self._starts))
        (file,) = until(lambda: set(self._ports()) - earlier, "a replica begins")
        until(lambda: ready(address_in(file)), "it is ready")
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        pid = self._cluster.pid(file.parent.name)
        fields = stat(pid)
        if self._starts > 1:  # the first also reads the libraries from the disk
            self.measured.start_s.append(now_s - int(fields[19]) / _TICKS_PER_S)
            self.measured.start_cpu_s.append(sum(map(int, fields[11:15])) / _TICKS_PER_S)
        self._cluster.until_ready(1)

    def _ports(self) -> list[Path]:
        return list(self._cluster.layout.private.glob("*/ports"))

    def _process(self) -> tuple[int, str]:
        (file,) = self._ports()
        return self._cluster.pid(file.parent.name), address_in(file)


def address_in(ports: Path) -> str:
    """Return where a replica takes HTTP: a port, or `unix:` and a path."""
    return str(json.loads(ports.read_bytes())["http"])


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    """Give a connection to an address."""
    if address.startswith(_UNIX):
        connection = socket.socket(socket.AF_UNIX)
        place: str | tuple[str, int] = address.removeprefix(_UNIX)
    else:
        connection = socket.socket(socket.AF_INET)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        place = ("127.0.0.1", int(address))
    with connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(place)
        yield connection


def ready(address: str) -> bool:
    """Return whether a replica says that it is ready."""
    with suppress(OSError), connected(address) as connection:
        connection.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(65536).startswith(b"HTTP/1.1 200")
    return False


def send(connection: socket.socket, count: int) -> None:
    """Send small inference requests, one after the other."""
    body = infer_json()
    head = f"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    for _ in range(count):
        connection.sendall(request)
        answer = connection.recv(65536)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"a request failed: {answer[:300]!r}")


def cpu_ns(pid: int) -> int:
    """Return the processor time of a process's threads, to the nanosecond."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the program's name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def until(look: Callable[[], Found], what: str) -> Found:
    """Return the first true thing that `look` finds."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(_LOOK_S)
    return found


def table(off: Measured, best: Measured) -> str:
    """Return medians of both modes and their ratios."""
    rows: list[tuple[str, Sequence[float], Sequence[float], str]] = [
        ("a request, processor time (µs)", off.request_us, best.request_us, ".1f"),
        ("a start, processor time (s)", off.start_cpu_s, best.start_cpu_s, ".3f"),
        ("a start, until it is ready (s)", off.start_s, best.start_s, ".3f"),
    ]
    lines = [f"{'':<34}{'off':>9}{'best':>9}{'ratio':>9}"]
    for name, without, within, form in rows:
        one, other = statistics.median(without), statistics.median(within)
        lines.append(f"{name:<34}{one:>9{form}}{other:>9{form}}{other / one:>9.3f}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=20_000, help="of a round, each way")
    options = parser.parse_args()
    print(f"Sandbox of this machine: {ability.shortfall(Mode.BEST) or ability.WHOLE}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        replicas = []
        for mode in MODES:
            home = Path(folder) / mode
            home.mkdir()
            replicas.append(stack.enter_context(Replica(home, mode).running()))
        for number in range(options.rounds):
            for replica in replicas if number % 2 else replicas[::-1]:
                replica.measure(options.requests)
            print(f"round {number + 1} of {options.rounds}", flush=True)
        print(table(*(replica.measured for replica in replicas)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
