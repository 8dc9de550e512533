"""Closed-loop load generator, in its own process: each client sends a request as soon as it has its last response.

    python -m serving_runtime.tuning.load PORT CONCURRENCY SECONDS FILE

FILE holds the HTTP request, whole. Prints one line of JSON: `requests_per_s`, `p50_ms`, `p99_ms`, or `error`. A window
is made longer, up to five times, until it holds enough requests for a 99th percentile to mean something.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import cast

import httptools
import uvloop

ENOUGH_REQUESTS = 100
_LONGEST = 5
_WARM_UP = 0.2
"""Warm-up before the window."""
_OK = 200
_HOST = "127.0.0.1"


class Loop:
    """State shared by all clients of one measurement."""

    def __init__(self, request: bytes, seconds: float) -> None:
        self.request = request
        self.times_s: list[float] = []
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.begins = perf_counter() + _WARM_UP * seconds
        self._enough_at, self._latest = self.begins + seconds, self.begins + _LONGEST * seconds
        self.over_at = 0.0

    def answered(self, started: float, now: float) -> bool:
        """Count a response; returns whether its client continues."""
        if now >= self.begins:
            self.times_s.append(now - started)
        if now >= self._latest or (now >= self._enough_at and len(self.times_s) >= ENOUGH_REQUESTS):
            self.end("", now)
        return not self.ended.done()

    def end(self, error: str, now: float) -> None:
        if not self.ended.done():
            self.over_at = now
            self.ended.set_result(error)

    @property
    def found(self) -> dict[str, float]:
        times = sorted(self.times_s)
        return {
            "requests_per_s": round(len(times) / (self.over_at - self.begins), 2),
            "p50_ms": round(times[len(times) // 2] * 1e3, 3),
            "p99_ms": round(times[min(len(times) - 1, int(len(times) * 0.99))] * 1e3, 3),
        }


class Client(asyncio.Protocol):
    """One connection with one request in flight."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._parser = loop, httptools.HttpResponseParser(self)
        self._started, self._body = 0.0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if self._parser.get_status_code() != _OK:
            self._body += body

    def on_message_complete(self) -> None:
        now, status = perf_counter(), self._parser.get_status_code()
        if status != _OK:
            self._loop.end(f"{status}: {self._body.decode(errors='replace')[:500]}", now)
        elif self._loop.answered(self._started, now):
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._loop.end(f"the server closed a connection: {exc or 'no error'}", perf_counter())

    def _send(self) -> None:
        self._started = perf_counter()
        self._transport.write(self._loop.request)


async def measure(port: int, concurrency: int, seconds: float, request: bytes) -> dict[str, object]:
    """Return the measurement of so many clients, or `error`."""
    shared = Loop(request, seconds)
    running = asyncio.get_running_loop()
    try:
        for _ in range(concurrency):
            await running.create_connection(lambda: Client(shared), _HOST, port)
        async with asyncio.timeout(shared.begins - perf_counter() + 4 * _LONGEST * seconds + 30):
            error = await shared.ended
    except TimeoutError:
        return {"error": "no request was answered"}
    except OSError as refused:
        return {"error": f"the server cannot be reached: {refused}"}
    if error or not shared.times_s:
        return {"error": error or "no request was answered"}
    return {**shared.found}


def main(arguments: Sequence[str]) -> int:
    port, concurrency, seconds, file = arguments
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(int(port), int(concurrency), float(seconds), Path(file).read_bytes()))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
