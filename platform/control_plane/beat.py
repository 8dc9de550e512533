"""Celery beat scheduler in memory, of which one acts: the one that holds the lease in the broker's Redis.

Any number of beats may run there. The holder renews the lease each second; a beat that is killed or cut off is replaced
once its lease has expired, one that stops releases it. Two that overlap for a moment send some hints twice, which does
no harm (decision 0003). With other brokers a beat always acts, and there must be one only.

Without beat's file, where a full disk would end it. Every task is due when a beat starts to act, and then as often as
scheduled: an hourly task also runs where the platform is restarted more often.
"""

import logging
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from celery import Celery, beat
from celery.schedules import schedule
from kombu import Connection
from kombu.exceptions import KombuError
from prometheus_client import Gauge

logger = logging.getLogger(__name__)
ACTIVE = Gauge("fairlead_beat_active", "1 in the beat that sends the periodic tasks, 0 in the others.")
LEASE_S, RENEW_EVERY_S = 5.0, 1.0
_ANSWER_S = 1.0
_KEY = "fairlead:beat"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


class Lease:
    """The right to send periodic tasks, for some seconds; without Redis this process always has it."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._token = uuid.uuid4().hex
        broker = app.connection_for_write()
        self._is_shared = broker.transport.driver_type == "redis"
        self._errors: tuple[type[BaseException], ...] = (
            *broker.connection_errors,
            *broker.channel_errors,
            KombuError,
            OSError,
        )
        self._connection: Connection | None = None
        self._is_held: bool | None = None
        self._asked_at = 0.0

    def is_held(self) -> bool:
        """Take or renew the lease where that is due, and return whether it is held. False where Redis is away."""
        now = time.monotonic()
        if self._is_held is not None and now < self._asked_at + RENEW_EVERY_S:
            return self._is_held
        self._asked_at = now
        held = not self._is_shared or bool(self._ask(_TAKE, self._token, round(LEASE_S * 1000)))
        if held is not self._is_held:
            logger.info("this beat %s", "sends the periodic tasks" if held else "waits: it has no lease")
            ACTIVE.set(held)
        self._is_held = held
        return held

    def release(self) -> None:
        """Let another beat take over at once."""
        if self._is_shared and self._is_held:
            self._ask(_RELEASE, self._token)
        self._is_held = None
        self._disconnect()

    def _ask(self, script: str, *arguments: str | int) -> Any:
        try:
            channel: Any = self._connected().default_channel
            return channel.client.eval(script, 1, _KEY, *arguments)
        except self._errors as error:
            logger.warning("redis does not answer, so this beat sends nothing: %s", error)
            self._disconnect()
            return None

    def _connected(self) -> Connection:
        if self._connection is None:
            options = {"socket_timeout": _ANSWER_S, "socket_connect_timeout": _ANSWER_S}
            connection = self._app.connection_for_write(transport_options=options)
            connection.connect()
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.release()
        self._connection = None


class Scheduler(beat.Scheduler):
    """Celery's scheduler in memory, with a lease."""

    def setup_schedule(self) -> None:
        """Load the schedule, all of it due now."""
        super().setup_schedule()
        self._lease = Lease(self.app)
        for entry in self.schedule.values():
            if isinstance(entry.schedule, schedule):
                entry.last_run_at = _LONG_AGO

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send one task that is due, where this beat has the lease; return the seconds until the next call."""
        if not self._lease.is_held():
            return RENEW_EVERY_S
        return min(super().tick(*args, **kwargs), RENEW_EVERY_S)

    def close(self) -> None:
        """Release the lease."""
        self._lease.release()
        super().close()
