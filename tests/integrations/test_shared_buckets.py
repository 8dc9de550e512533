"""Token buckets that processes share in Redis, which goes, hangs and comes back."""

import logging
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from common.token_buckets import TokenBuckets, Verdict
from integrations import shared_buckets
from integrations.shared_buckets import SharedBuckets
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.redis import Redis, redis, redis_socket

pytestmark = pytest.mark.redis
LIMIT = 10


@pytest.fixture(scope="module")
def _server() -> Iterator[Redis]:
    try:
        with redis() as server:
            yield server
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture
def server(_server: Redis) -> Redis:
    if _server.process is None:
        _server.start()
    with socket.create_connection(("127.0.0.1", _server.port)) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(64).startswith(b"+OK")
    return _server


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_buckets, "_PAUSE_S", 0.05)


def counted(store: str) -> float:
    return float(shared_buckets.CHECKS.labels(store)._value.get())


def take(buckets: SharedBuckets, key: str = "alice", count: int = 1) -> Verdict:
    return buckets.take(("token", key), per_minute=1, now=time.monotonic(), count=count)


def connected(url: str, secret: str = "s") -> SharedBuckets:
    buckets = SharedBuckets(url, secret)
    until_in_redis(buckets)
    return buckets


def until_in_redis(buckets: SharedBuckets) -> None:
    until(lambda: has_counted("redis", buckets), "a count in Redis")


def has_counted(store: str, buckets: SharedBuckets) -> bool:
    before = counted(store)
    take(buckets, "nobody in particular", count=0)
    return counted(store) > before


def until_attempted(buckets: SharedBuckets, attempt: str) -> None:
    before = buckets._next_attempt
    until(lambda: has_counted("memory", buckets) and buckets._next_attempt > before, f"{attempt} attempt to connect")


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, f"no {what} within 20 s"
        time.sleep(0.01)


def test_two_share_one_limit_and_a_third_of_another_installation_has_its_own(server: Redis) -> None:
    one, other, stranger = connected(server.url), connected(server.url), connected(server.url, "another secret")
    found = [take(each) for _ in range(LIMIT // 2) for each in (one, other)]
    assert [each.remaining for each in found] == list(range(LIMIT - 1, -1, -1))
    for each in (one, other):
        refused = take(each)
        assert (refused.allowed, refused.limit, refused.wait_s) == (False, LIMIT, 60)
        assert refused.headers["RateLimit-Reset"] == "600"
    assert take(other, "bob").remaining == LIMIT - 1
    assert take(stranger).remaining == LIMIT - 1


def _takes(url: str, secret: str, results: "multiprocessing.SimpleQueue[int]", start: object) -> None:
    buckets = connected(url, secret)
    start.wait()  # type: ignore[attr-defined]
    results.put(sum(take(buckets, "everybody").allowed for _ in range(LIMIT * 2)))


def test_processes_that_count_at_once_share_one_limit(server: Redis) -> None:
    context = multiprocessing.get_context("spawn")
    results, start = context.SimpleQueue(), context.Barrier(2)
    processes = [context.Process(target=_takes, args=(server.url, "s", results, start)) for _ in range(2)]
    for each in processes:
        each.start()
    found = [results.get() for _ in processes]
    for each in processes:
        each.join(20)
    assert sum(found) == LIMIT, found


def test_it_counts_as_memory_does(server: Redis) -> None:
    shared, memory = connected(server.url), TokenBuckets()
    for count in (0, 1, 0, 2, 3, 0, 4, 1, 0):
        at = time.monotonic()
        mine = shared.take("a", per_minute=1, now=at, count=count)
        assert mine == memory.take("a", per_minute=1, now=at, count=count)
    assert shared.take("b", per_minute=600, now=time.monotonic(), burst=7).headers["RateLimit-Remaining"] == "6"


def test_a_bucket_fills_again_and_its_key_goes(server: Redis) -> None:
    one, other = connected(server.url), connected(server.url)

    def drain(buckets: SharedBuckets) -> int:
        return sum(buckets.take("fast", per_minute=1200, now=time.monotonic(), burst=5).allowed for _ in range(5))

    assert drain(one) == 5
    assert drain(other) < 5
    until(lambda: _reply(server, b"DBSIZE\r\n") == b":0\r\n", "end of the key")
    assert drain(other) == 5


def test_names_in_redis_say_nothing(server: Redis) -> None:
    buckets = connected(server.url)
    buckets.take(("address", "192.0.2.7"), per_minute=1, now=time.monotonic())
    keys = _reply(server, b"KEYS *\r\n")
    assert b"fairlead:rate:" in keys
    assert b"192.0.2.7" not in keys


def test_redis_stops_in_the_middle_and_comes_back(server: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    buckets = connected(server.url)
    for _ in range(LIMIT - 2):
        take(buckets)
    server.stop()
    # Memory goes on from what Redis answered last.
    assert [take(buckets).allowed for _ in range(4)] == [True, True, False, False]
    for attempt in ("first", "second", "third"):
        until_attempted(buckets, attempt)
    server.start()
    until_in_redis(buckets)
    assert take(buckets, "carol").remaining == LIMIT - 1
    lines = [each.message for each in caplog.records if each.name == shared_buckets.__name__]
    assert len(lines) == 2, lines
    assert "counted in this process alone" in lines[0]
    assert lines[1] == "redis counts requests again"


def _waits(took_s: list[float]) -> int:
    """Return how many took as long as the wait for an answer of Redis."""
    return sum(each >= shared_buckets._ANSWER_S for each in took_s)


def test_redis_hangs_in_the_middle(server: Redis) -> None:
    assert server.process is not None
    buckets = connected(server.url)
    server.process.send_signal(signal.SIGSTOP)
    try:
        found, took_s = [], []
        for _ in range(LIMIT + 1):
            began = time.monotonic()
            found.append(take(buckets))
            took_s.append(time.monotonic() - began)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert [each.allowed for each in found] == [True] * LIMIT + [False]
    # One request waits for an answer, and the others do not; on a busy machine another may wait for the processor.
    assert 1 <= _waits(took_s) <= 2
    until_in_redis(buckets)


def test_a_server_that_says_nothing_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        buckets = SharedBuckets(f"redis://127.0.0.1:{listener.getsockname()[1]}/0", "s")
        took_s = []
        deadline = time.monotonic() + 20
        while not caplog.records:
            assert time.monotonic() < deadline
            began = time.monotonic()
            assert take(buckets, str(began)).allowed
            took_s.append(time.monotonic() - began)
    assert _waits(took_s) <= 1 + len(took_s) // 20, "on a busy machine a few wait for the processor"


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "redis://no.such.host.invalid:6379/0", "redis://h:port/0"])
def test_an_address_without_redis_counts_in_memory(url: str, caplog: pytest.LogCaptureFixture) -> None:
    buckets = SharedBuckets(url, "s")
    assert [take(buckets).allowed for _ in range(LIMIT + 1)] == [True] * LIMIT + [False]
    until(lambda: has_counted("memory", buckets) and bool(caplog.records), "line in the log")


def test_a_redis_that_forgets_the_script_gets_it_again(server: Redis) -> None:
    buckets = connected(server.url)
    assert _reply(server, b"SCRIPT FLUSH\r\n") == b"+OK\r\n"
    assert take(buckets).allowed
    until_in_redis(buckets)


def test_the_address_of_a_socket_is_as_celery_has_it() -> None:
    try:
        with redis_socket() as url:
            buckets = connected(url.replace("virtual_host=0", "virtual_host=3"))
            assert take(buckets).remaining == LIMIT - 1
    except MissingPartError as missing:
        skip_or_fail(missing)


def _reply(server: Redis, command: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(command)
        return connection.recv(65536)
