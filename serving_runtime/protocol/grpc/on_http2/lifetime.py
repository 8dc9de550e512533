"""Connection keepalive and maximum age: pings to silent clients, limits of theirs, an age at which they must reconnect.

keepalive: silent for keepalive_time --> PING --silent for keepalive_timeout--> ended
age:       max_connection_age --> drained --max_connection_age_grace--> ended
pings:     too soon, with nothing sent to the client in between, more than max_ping_strikes times --> ended
stuck:     takes nothing of what there is for it for STUCK_S --> ended
"""

import asyncio
from collections.abc import Callable

from serving_runtime.protocol.grpc.settings import GrpcSettings
from serving_runtime.protocol.http2.connection import Connection

STUCK_S = 30.0
"""How long a client may read nothing of pending content before its connection is ended."""


class Lifetime:
    """The timers of one connection."""

    def __init__(self, connection: Connection, settings: GrpcSettings, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._settings = settings
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._pings = 0  # in a row, without anything sent in between
        self._frames_sent = 0
        self._unwritten_bytes = 0
        self._strikes = self._frames_sent_at_ping = 0
        self._pinged_at: float | None = None
        self._later("keepalive", settings.keepalive_time_ms / 1000, self._look)
        self._later("stuck", STUCK_S, self._look_for_progress)
        if settings.max_connection_age_ms is not None:
            self._later("age", settings.max_connection_age_ms / 1000, self._grow_old)

    def end(self) -> None:
        """Stop all timers: the connection has ended."""
        for timer in self._timers.values():
            timer.cancel()

    def bears_ping(self) -> bool:
        """Return whether the client may ping now; early pings are strikes (gRPC: keepalive enforcement)."""
        settings, connection = self._settings, self._connection
        if connection.out.frames_sent != self._frames_sent_at_ping:  # content was sent since its last ping
            self._strikes, self._frames_sent_at_ping, self._pinged_at = 0, connection.out.frames_sent, None
        last, self._pinged_at = self._pinged_at, connection.heard_at
        if last is not None and self._pinged_at - last < settings.min_recv_ping_interval_ms / 1000:
            self._strikes += 1
        return not settings.max_ping_strikes or self._strikes <= settings.max_ping_strikes

    def _later(self, name: str, delay_s: float, then: Callable[[], None]) -> None:
        self._timers[name] = self._loop.call_later(delay_s, then)

    def _look(self) -> None:
        """Ping the client if it was silent for long enough."""
        period_s = self._settings.keepalive_time_ms / 1000
        left_s = self._connection.heard_at + period_s - self._loop.time()
        if left_s > 0:
            self._later("keepalive", left_s, self._look)
        elif self._may_ping():
            asked_at = self._loop.time()
            self._connection.ping()
            timeout_s = self._settings.keepalive_timeout_ms / 1000
            self._later("keepalive", timeout_s, lambda: self._look_for_answer(asked_at))
        else:
            self._later("keepalive", period_s, self._look)

    def _may_ping(self) -> bool:
        if not (self._connection.streams or self._settings.keepalive_permit_without_calls):
            return False
        if self._connection.out.frames_sent != self._frames_sent:
            self._frames_sent, self._pings = self._connection.out.frames_sent, 0
        most = self._settings.max_pings_without_data
        self._pings += 1
        return not most or self._pings <= most

    def _look_for_answer(self, asked_at: float) -> None:
        if self._connection.heard_at < asked_at:
            self._connection.abort()
        else:
            self._look()

    def _look_for_progress(self) -> None:
        unwritten = self._connection.write_buffer_bytes()
        if unwritten and unwritten == self._unwritten_bytes:
            self._connection.abort()
            return
        self._unwritten_bytes = unwritten
        self._later("stuck", STUCK_S, self._look_for_progress)

    def _grow_old(self) -> None:
        self._connection.drain()
        grace_ms = self._settings.max_connection_age_grace_ms
        if grace_ms is not None:
            self._later("age", grace_ms / 1000, self._connection.abort)
