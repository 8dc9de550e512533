"""Mixed load for a while: does memory grow, does the tail get longer, is a descriptor left behind?

    python -m benchmarks.serving.soak [--minutes 10]

Rounds of HTTP binary, HTTP JSON, gRPC on many connections and on one, images in binary and as JSON, and clients that
leave in the middle of a request. After each round, with no client left and once the server has rested and given free
memory back, resident memory and open descriptors are noted. Ends with 1 where the last quarter of the rounds holds more
memory than the second quarter by more than 3 % and 4 MB, or a descriptor more all the time. The first quarter is for
caches to fill, and for models to move into threads of their own.
"""

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.serving import loads, models, requests
from benchmarks.serving.peers.base import Running
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.processes import run_program
from serving_runtime.engine.memory import idle_memory_trim

_SMALL, _IMAGE = models.MODELS["mlp_small"], models.MODELS["image_mean"]
_SHARE, _MB = 0.03, 4.0
_QUIET_S, _FEWEST_ROUNDS = 10.0, 8
_LEAVERS = 50


class Round(NamedTuple):
    """What was seen after one round; the tail is of HTTP binary requests, 32 at once."""

    rss_mb: float
    descriptors: int
    p99_us: float


def verdict(rounds: Sequence[Round]) -> list[str]:
    """Return a sentence for each thing that leaks."""
    quarter = max(len(rounds) // 4, 1)
    before = median(found.rss_mb for found in rounds[quarter : 2 * quarter] or rounds[:1])
    after = median(found.rss_mb for found in rounds[-quarter:])
    first = max(found.descriptors for found in rounds[quarter : 2 * quarter] or rounds[:1])
    last = min(found.descriptors for found in rounds[-quarter:])
    sentences = []
    if after - before > max(_SHARE * before, _MB):
        sentences.append(f"resident memory grew from {before:.1f} to {after:.1f} MB")
    if last > first:
        sentences.append(f"open descriptors grew from {first} to {last}")
    return sentences


def _round(running: Running, seconds: int, scratch: Path, idle_descriptors: int) -> Round:
    assert running.http is not None
    assert running.json is not None
    assert running.grpc_port is not None
    p99 = loads.wrk(*running.http(_SMALL), 32, seconds, scratch).p99_us or 0.0
    loads.wrk(*running.json(_SMALL), 8, seconds, scratch)
    for post in (running.http, running.json):
        loads.wrk(*post(_IMAGE), 2, seconds, scratch)
    message = requests.v2_grpc(_SMALL)
    loads.h2load(running.grpc_port, message, 16, 1, seconds, scratch)
    loads.h2load(running.grpc_port, message, 1, 32, seconds, scratch)
    url, body = running.http(_IMAGE)
    _leave(int(url.split(":")[2].partition("/")[0]), body)
    _wait(lambda: running.process.descriptors() <= idle_descriptors)
    time.sleep(idle_memory_trim.QUIET_S + 2 * idle_memory_trim.EVERY_S)
    return Round(running.process.rss_mb(), running.process.descriptors(), p99)


def _leave(port: int, body: requests.Body) -> None:
    """Go away with half of a request read: all together, so that each round asks for the same memory at its peak."""
    head = f"POST /v2/models/{_IMAGE.name}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body.content)}\r\n\r\n"
    with ExitStack() as leavers:
        for _ in range(_LEAVERS):
            connection = leavers.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(head.encode() + body.content[: len(body.content) // 2])
        _wait(lambda: _unread_bytes(port) == 0)


def _unread_bytes(port: int) -> int:
    """Return how much has arrived at a port of this machine that its server has not read (proc(5), /proc/net/tcp)."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]
    return sum(int(row[4].partition(":")[2], 16) for row in established)


def _wait(quiet: Callable[[], bool]) -> None:
    """Wait for the server; who leaks is told afterwards, so this raises nothing."""
    deadline = time.monotonic() + _QUIET_S
    while not quiet() and time.monotonic() < deadline:
        time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    options = parser.parse_args()
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as name:
        folder = Path(name)
        for model in (_SMALL, _IMAGE):
            models.save(model.name, folder / "models" / f"{model.name}.onnx")
        running = Fairlead(serves=(_SMALL.name, _IMAGE.name)).start(Path(sys.executable), folder / "models", folder)
        try:
            running.process.wait_until(running.ready)
            idle = running.process.descriptors()
            end = time.monotonic() + options.minutes * 60
            seconds = 2 if options.minutes < 5 else 5
            while time.monotonic() < end or len(rounds) < _FEWEST_ROUNDS:
                rounds.append(_round(running, seconds, folder, rounds[0].descriptors if rounds else idle))
                last = rounds[-1]
                tail = f"p99 {last.p99_us / 1000:.1f} ms"
                print(f"{last.rss_mb:7.1f} MB resident, {last.descriptors} descriptors, {tail}", flush=True)
        finally:
            running.process.stop()
    leaks = verdict(rounds)
    print("\n".join(leaks) or f"{len(rounds)} rounds: memory is flat, no descriptor was left behind")
    return 1 if leaks else 0


if __name__ == "__main__":
    run_program(main)
