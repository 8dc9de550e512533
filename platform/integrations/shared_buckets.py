"""Token buckets in Redis that all web processes share; in memory while Redis is away or slow.

A bucket is one number: the time, by Redis' clock, at which it is full again (the generic cell rate algorithm). The key
expires at that time, since a missing bucket is a full one. Its name is a keyed digest, so that Redis has no addresses.

Requests only use connections that a thread made before, and wait 50 ms at most for an answer. After a failure they
count in memory, and once a second one has a thread connect again. The memory follows what Redis answers: it goes on
from there, and refuses a client whose bucket is empty without a question, since other processes only take.
"""

import hmac
import logging
import threading
import time
from collections.abc import Hashable
from queue import Empty, LifoQueue

from prometheus_client import Counter
from redis import ConnectionPool, RedisError
from redis.backoff import NoBackoff
from redis.connection import ConnectionInterface
from redis.retry import Retry

from common.token_buckets import TokenBuckets, Verdict

logger = logging.getLogger(__name__)

CHECKS = Counter(
    "fairlead_rate_limit_checks",
    "Requests counted for their limits where processes share them: in redis, or in memory while that is away.",
    ["store"],
)

_ANSWER_S, _CONNECTION_S = 0.05, 0.02
_CONNECT_S = 1.0
_PAUSE_S = 1.0
_CONNECTIONS = 32
_FAILURES = (RedisError, OSError, ValueError, TypeError)

_TAKE = """
local limit, rate, count = tonumber(ARGV[1]), tonumber(ARGV[2]) / 60000000, tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full_at = tonumber(redis.call('GET', KEYS[1]) or now) or now
local level = math.max(0, math.min(limit, limit - (full_at - now) * rate))
local allowed = level >= math.max(1, count)
if allowed and count > 0 then
  level = level - count
  local wait = (limit - level) / rate
  redis.call('SET', KEYS[1], string.format('%.0f', now + wait), 'PX', math.ceil(wait / 1000))
end
return {allowed and 1 or 0, string.format('%.6f', level)}
"""


class SharedBuckets:
    """`common.token_buckets.Buckets` in one Redis; safe to use from several threads, not in an event loop.

    Args:
        url: of Celery's broker: `redis://`, `rediss://` or `redis+socket://`.
        secret: the same in all processes that share the buckets.
    """

    def __init__(self, url: str, secret: str) -> None:
        self._url = _redis_url(url)
        self._secret = hmac.digest(secret.encode(), b"names of rate limits", "sha256")
        self._memory = TokenBuckets()
        self._idle: LifoQueue[ConnectionInterface] | None = None
        self._script = b""
        self._lock = threading.Lock()
        self._is_connecting = self._is_reported_away = False
        self._next_attempt = 0.0

    def take(self, key: Hashable, *, per_minute: int, now: float, count: int = 1, burst: int | None = None) -> Verdict:
        """Take `count` tokens if they are there, as `Buckets.take`; waits 70 ms at most."""
        known = self._memory.take(key, per_minute=per_minute, now=now, count=0, burst=burst)
        if not known.allowed:
            return known
        found = self._ask(key, known.limit, per_minute, count)
        if found is None:
            CHECKS.labels("memory").inc()
            return self._memory.take(key, per_minute=per_minute, now=now, count=count, burst=burst)
        CHECKS.labels("redis").inc()
        allowed, level = found
        self._memory.put(key, level, now)
        return Verdict.of(level, allowed=allowed, limit=known.limit, per_minute=per_minute)

    def look(self, key: Hashable, *, per_minute: int, now: float) -> Verdict:
        """Return what this process knows of a bucket, as `Buckets.look`; asks nothing of Redis."""
        return self._memory.look(key, per_minute=per_minute, now=now)

    def _ask(self, key: Hashable, limit: int, per_minute: int, count: int) -> tuple[bool, float] | None:
        """Return whether Redis allows it and what the bucket holds; None where Redis did not answer in time."""
        idle = self._idle
        if idle is None:
            self._connect_beside()
            return None
        try:
            connection = idle.get(timeout=_CONNECTION_S)
        except Empty:
            return None
        try:
            found = _run(connection, self._script, self._name(key), (limit, per_minute, count))
        except _FAILURES as error:
            logger.debug("redis did not count a request: %s", error)
            self._leave(idle)
            return None
        idle.put(connection)
        return found

    def _name(self, key: Hashable) -> str:
        return f"fairlead:rate:{hmac.digest(self._secret, repr(key).encode(), 'sha256')[:16].hex()}"

    def _leave(self, idle: "LifoQueue[ConnectionInterface]") -> None:
        """Stop using these connections; those in use go with the last request that has one."""
        with self._lock:
            if self._idle is idle:
                self._idle = None
        self._connect_beside()

    def _connect_beside(self) -> None:
        """Connect in a thread, which nothing waits for: names may resolve slowly."""
        with self._lock:
            if self._is_connecting or time.monotonic() < self._next_attempt:
                return
            self._is_connecting = True
        try:
            threading.Thread(target=self._connect, name="rate-limits", daemon=True).start()
        except RuntimeError:  # the machine has no more threads
            self._is_connecting = False

    def _connect(self) -> None:
        try:
            idle, script = _connected(self._url)
        except _FAILURES as error:
            if not self._is_reported_away:
                logger.warning("requests are counted in this process alone, since redis does not count them: %s", error)
            self._is_reported_away = True
        else:
            if self._is_reported_away:
                logger.info("redis counts requests again")
            self._is_reported_away = False
            self._script, self._idle = script, idle
        finally:
            with self._lock:
                self._next_attempt = time.monotonic() + _PAUSE_S
                self._is_connecting = False


def _connected(url: str) -> "tuple[LifoQueue[ConnectionInterface], bytes]":
    """Return open connections on which the script has run, and its name in Redis."""
    pool = ConnectionPool.from_url(
        url,
        socket_connect_timeout=_CONNECT_S,
        socket_timeout=_ANSWER_S,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    idle: LifoQueue[ConnectionInterface] = LifoQueue()
    for _ in range(_CONNECTIONS):
        connection = pool.make_connection()
        connection.connect()  # type: ignore[no-untyped-call]
        connection.send_command("SCRIPT", "LOAD", _TAKE)  # type: ignore[no-untyped-call]
        script = bytes(connection.read_response())
        _run(connection, script, "fairlead:rate:look", (1, 1, 0))
        idle.put(connection)
    return idle, script


def _run(
    connection: ConnectionInterface, script: bytes, name: str, arguments: tuple[int, int, int]
) -> tuple[bool, float]:
    connection.send_command("EVALSHA", script, 1, name, *arguments)  # type: ignore[no-untyped-call]
    allowed, level = connection.read_response()
    return bool(allowed), float(level)


def _redis_url(broker: str) -> str:
    """Return the address of a broker as redis-py names it, which differs from kombu in sockets and words of TLS."""
    url = broker.replace("ssl_cert_reqs=CERT_", "ssl_cert_reqs=")
    if url.startswith("redis+socket://"):
        url = url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=", 1)
    return url
