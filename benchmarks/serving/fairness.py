"""A polite client beside a greedy one: how long does it wait, how often is it refused?

    python -m benchmarks.serving.fairness [--rounds 3] [--seconds 5] [--greedy 64]

The server has bert_mini, one request at a time, and --max-concurrent-requests=2, so that 20 requests wait. The polite
client sends one request at a time; the greedy one keeps many connections busy, and tries again 50 ms after a refusal.
Three cases take turns: the polite client alone, both as one caller (first in, first out, as without fair shares), and
both as callers of their own, by the header that the gateway sets. Everything is on the loopback device.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.serving import models
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.processes import CLIENT_CORE, run_program
from benchmarks.serving.requests import Body

_MODEL = models.MODELS["bert_mini"]
_AGAIN_S = 0.05
_COLUMNS = ("p50, ms", "p99, ms", "answered", "refused", "greedy client: answered", "refused")


class Case(NamedTuple):
    """Who sends requests.

    Attributes:
        greedy: the greedy client's name as a caller; empty where it is silent.
    """

    name: str
    greedy: str


CASES = (
    Case("polite client alone", ""),
    Case("beside the greedy one, one caller", "polite"),
    Case("beside the greedy one, two callers", "greedy"),
)


@dataclass
class Seen:
    """What one client saw: the latencies of answers in milliseconds, and how many requests were refused."""

    latencies_ms: list[float] = field(default_factory=list)
    refused: int = 0


class Round(NamedTuple):
    """One case in one round."""

    case: Case
    polite: Seen
    greedy: Seen


def lines(rounds: Sequence[Round]) -> Iterator[str]:
    """Yield the table, which is Markdown: medians of the rounds' quantiles, and sums."""
    yield f"| | {' | '.join(_COLUMNS)} |"
    yield "| --- " * (len(_COLUMNS) + 1) + "|"
    for case in CASES:
        found = [each for each in rounds if each.case == case]
        p50, p99 = (median(_percentile(each.polite, percent) for each in found) for percent in (50, 99))
        counts = [
            count
            for who in ([each.polite for each in found], [each.greedy for each in found])
            for count in (sum(len(seen.latencies_ms) for seen in who), sum(seen.refused for seen in who))
        ]
        yield f"| {case.name} | {p50:.0f} | {p99:.0f} | {' | '.join(f'{count:,}' for count in counts)} |"


def _percentile(seen: Seen, percent: int) -> float:
    """Return a percentile of the latencies; infinite where nothing was answered."""
    if len(seen.latencies_ms) < 2:
        return seen.latencies_ms[0] if seen.latencies_ms else float("inf")
    return quantiles(seen.latencies_ms, n=100, method="inclusive")[percent - 1]


async def client(url: str, body: Body, caller: str, until: float) -> Seen:
    """Send one request after the other until that time of the monotonic clock.

    Raises RuntimeError for an answer other than 200 and 503.
    """
    seen = Seen()
    address = urlsplit(url)
    headers = {**body.headers, "Host": address.netloc, "Content-Length": str(len(body.content))}
    if caller:
        headers["fairlead-caller"] = caller
    head = f"POST {address.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        while (began := time.monotonic()) < until:
            writer.write(head.encode() + b"\r\n" + body.content)
            status = await _status(reader)
            if status == 200:
                seen.latencies_ms.append((time.monotonic() - began) * 1000)
            elif status == 503:
                seen.refused += 1
                await asyncio.sleep(_AGAIN_S)
            else:
                raise RuntimeError(f"{url} answered {status}, not 200 or 503")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return seen


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of an answer, read to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return int(head.split(maxsplit=2)[1])


async def one_round(url: str, body: Body, case: Case, greedy: int, seconds: float) -> Round:
    """Let both clients send for so many seconds."""
    until = time.monotonic() + seconds
    flood = [client(url, body, case.greedy, until) for _ in range(greedy if case.greedy else 0)]
    polite, *others = await asyncio.gather(client(url, body, "polite", until), *flood)
    latencies = [latency for seen in others for latency in seen.latencies_ms]
    return Round(case, polite, Seen(latencies, sum(seen.refused for seen in others)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of load, for each case in each round (5)")
    parser.add_argument("--greedy", type=int, default=64, help="requests at once of the greedy client (64)")
    options = parser.parse_args()
    if CLIENT_CORE.isdigit() and int(CLIENT_CORE) in os.sched_getaffinity(0):
        os.sched_setaffinity(0, {int(CLIENT_CORE)})
    with tempfile.TemporaryDirectory(prefix="fairlead-fairness-") as name:
        found = _measured(Path(name), options.rounds, options.seconds, options.greedy)
    print("\n".join(lines(found)))
    return 0


def _measured(folder: Path, rounds: int, seconds: float, greedy: int) -> list[Round]:
    models.save(_MODEL.name, folder / "models" / f"{_MODEL.name}.onnx")
    kind = Fairlead("--max-concurrent-requests=2", serves=(_MODEL.name,))
    running = kind.start(Path(sys.executable), folder / "models", folder)
    found: list[Round] = []
    try:
        running.process.wait_until(running.ready)
        assert running.http is not None
        url, body = running.http(_MODEL)
        asyncio.run(one_round(url, body, CASES[0], 0, 1))  # for caches to fill
        for _ in range(rounds):
            for case in CASES:
                found.append(asyncio.run(one_round(url, body, case, greedy, seconds)))
                polite = found[-1].polite
                about = f"p99 {_percentile(polite, 99):.0f} ms, {polite.refused} refused"
                print(f"{case.name}: {about}", file=sys.stderr, flush=True)
    finally:
        running.process.stop()
    return found


if __name__ == "__main__":
    run_program(main)
