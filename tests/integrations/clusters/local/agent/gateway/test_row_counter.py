"""Rows a minute, counted from the access log: as files go, and with a real Envoy that refuses who is above."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest

from integrations.clusters.base import Access, Limits, RowRate
from integrations.clusters.local.access_log_files import AccessLogFiles, LogTail
from integrations.clusters.local.agent.gateway.row_counter import TURN_BYTES, RowCounter
from integrations.clusters.local.agent.gateway.row_limits import RowLimits
from integrations.clusters.local.envoy.values import RowsExceeded
from tests._support.gateway import GOOD, Gateway, running_gateway, token

PATH = "/serving/default/digits/v2/models/digits/infer"
PREVIEW = PATH.replace("digits/", "digits-preview/", 1)
GRPC_SERVICE = {"fairlead-service": "default/digits"}
RESOURCE_EXHAUSTED = 8
OF_CALLERS = RowLimits(callers={"default/digits": 10})


def line(key: str = "ci", rows: object = "4", **more: object) -> bytes:
    said: dict[str, object] = {
        "time": "2026-01-31T12:10:00Z",
        "service": "default/digits",
        "key": key,
        "path": "/v2/models/digits/infer",
    }
    said |= {"upstream": "default/digits-00001/http", "status": 200, "bytes_in": 100, "attempts": 1, "rows": rows}
    return json.dumps(said | more, separators=(",", ":")).encode() + b"\n"


@dataclass
class Log:
    """An access log that a counter follows; `at` is the counter's clock, `refused` what it had refused."""

    files: AccessLogFiles
    at: float
    refused: list[RowsExceeded] = field(default_factory=list)
    counters: list[RowCounter] = field(default_factory=list)

    def counter(
        self, limits: RowLimits = OF_CALLERS, refuse: Callable[[RowsExceeded], None] | None = None
    ) -> RowCounter:
        made = RowCounter(self.files.current, refuse or self.refused.append, clock=lambda: self.at)
        made.limit(limits)
        self.counters.append(made)
        return made

    def write(self, *lines: bytes) -> None:
        with self.files.current.open("ab") as file:
            file.write(b"".join(lines))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    files = AccessLogFiles(tmp_path / "access-log", segment_bytes=1)
    files.begin()
    made = Log(files, 1_000_000_000.0)
    yield made
    for each in made.counters:
        each.close()


def above(*keys: str) -> RowsExceeded:
    return RowsExceeded(callers=tuple(("default/digits", key) for key in keys))


async def test_a_caller_is_refused_from_its_last_row_to_the_end_of_the_minute(log: Log) -> None:
    log.write(line(), line(), line())
    counter = log.counter()
    await counter.turn()  # what was there before does not count
    log.write(line(), line(), b"\xff{", line("other"))
    await counter.turn()
    assert log.refused == []
    log.write(line())
    for _ in range(3):
        await counter.turn()
    assert log.refused == [above("ci")]
    log.at += 60
    await counter.turn()
    assert log.refused == [above("ci"), RowsExceeded()]


async def test_requests_that_reach_no_replica_count_nothing_and_none_can_pass_for_one(log: Log) -> None:
    counter = log.counter()
    await counter.turn()
    log.write(*(line(attempts=0) for _ in range(9)), line(upstream=None), line(status=500))
    await counter.turn()
    assert log.refused == []
    log.write(line(rows="10", request_id='"attempts":0'))
    await counter.turn()
    assert log.refused == [above("ci")]


async def test_rows_at_the_end_of_a_minute_count_in_the_next(log: Log) -> None:
    counter = log.counter()
    await counter.turn()
    log.at += 60 - log.at % 60 - 0.1
    log.write(line(rows="9"))
    log.at += 0.2
    await counter.turn()
    log.write(line(rows="1"))
    await counter.turn()
    assert log.refused == [above("ci")]


async def test_a_restart_forgets_the_minute(log: Log) -> None:
    counter = log.counter()
    await counter.turn()
    log.write(line(rows="50"))
    await counter.turn()
    assert log.refused == [above("ci")]
    log.refused.clear()
    restarted = log.counter()
    await restarted.turn()
    log.write(line(rows="9"))
    await restarted.turn()
    assert log.refused == []


async def test_a_limit_that_ends_opens_and_closes_the_file(log: Log) -> None:
    counter = log.counter()
    await counter.turn()
    log.write(line(rows="50"))
    await counter.turn()
    counter.limit(RowLimits())
    await counter.turn()
    assert log.refused == [above("ci"), RowsExceeded()]
    log.write(line("late", "50"))
    counter.limit(OF_CALLERS)
    await counter.turn()
    assert log.refused[2:] == [above("ci")]  # it is the same minute, and what nothing limited was not counted


async def test_absurd_rows_count_as_far_as_the_requests_bytes_could_hold_them(log: Log) -> None:
    counter = log.counter(RowLimits(callers={"default/digits": 101}, keys={"other": 2}))
    await counter.turn()
    log.write(line(rows="9" * 20), line("nonsense", "1e99"), line("other", "-5"), line("third", "9" * 400))
    await counter.turn()
    assert log.refused == []
    log.write(line(rows="1"))
    await counter.turn()
    assert log.refused == [above("ci")]


async def test_a_file_that_cannot_be_read_is_said_once_and_refuses_no_one(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.files.current.unlink()
    log.files.current.mkdir()
    counter = log.counter()
    for _ in range(3):
        await counter.turn()
    assert sum("rows are not counted" in each.message for each in caplog.records) == 1
    log.files.current.rmdir()
    log.write(line(rows="50"))
    await counter.turn()
    assert log.refused == [above("ci")]


def test_no_line_is_lost_or_read_twice_over_rotations_and_pieces(log: Log) -> None:
    tail, written, found = LogTail(log.files.current), 0, []
    assert tail.lines(100) == []
    for rotation in range(4):
        for _ in range(30):
            text = b"%06d" % written
            log.write(text[:3])  # a half line waits for its rest
            found += tail.lines(16)
            log.write(text[3:] + b"\n")
            written += 1
        assert log.files.set_aside()
        if rotation % 2:
            found += tail.lines(16)  # before Envoy opens the name again
            aside = list(log.files.files())[-1].path
            with aside.open("ab") as file:
                file.write(b"%06d\n" % written)
            written += 1
        log.files.current.touch()
        while more := tail.lines(16):
            found += more
    while more := tail.lines(16):
        found += more
    assert found == [b"%06d" % number for number in range(written)]
    tail.close()


def test_a_turn_reads_so_many_bytes_and_skips_what_is_no_line(log: Log) -> None:
    tail = LogTail(log.files.current)
    tail.lines(TURN_BYTES)
    log.write(b"x" * (TURN_BYTES + 10), b"\n", line() * 30_000)
    first, second = tail.lines(TURN_BYTES), tail.lines(TURN_BYTES)
    assert sum(map(len, first)) <= TURN_BYTES
    assert len(second) < 30_000
    assert second[1] == line().strip()
    number = len(second) - 1
    while more := tail.lines(TURN_BYTES):
        number += len(more)
    assert number == 30_000
    tail.close()


@dataclass
class Counted:
    """A gateway whose rows are counted."""

    gateway: Gateway
    counter: RowCounter
    log: Log

    async def limit(self, *rates: RowRate, access: Access | None = None, **limits: int) -> None:
        service = replace(self.gateway.routing.services[0], limits=Limits(**limits), access=access)
        await self.gateway.push(services=(service,), keys=replace(self.gateway.routing.keys, row_rates=rates))
        self.counter.limit(RowLimits.of(self.gateway.routing.services, self.gateway.routing.keys))
        await self.counter.turn()

    async def send(self, headers: dict[str, str], rows: object, path: str = PATH, body: bytes = b"x" * 50) -> int:
        url = f"http://127.0.0.1:{self.gateway.port}{path}"
        async with httpx.AsyncClient(timeout=20) as client:
            return (await client.post(url, content=body, headers=headers | {"x-rows": str(rows)})).status_code

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                await asyncio.sleep(0.05)
                await self.counter.turn()
        await self.gateway.push()  # which waits until Envoy has it

    async def until_written(self, number: int) -> None:
        """Wait until the log has so many lines, and count them."""
        await self.until(lambda: len(self.log.files.current.read_bytes().splitlines()) >= number)
        await self.counter.turn()
        await self.gateway.push()

    def next_minute(self) -> None:
        self.log.at += 60


@pytest.fixture
async def counted(tmp_path: Path, log: Log) -> AsyncIterator[Counted]:
    async with running_gateway(tmp_path, log=log.files.current) as gateway:
        yield Counted(gateway, log.counter(RowLimits(), gateway.router.refuse), log)


def key(name: str, team: str = "fraud", token_id: str = "") -> dict[str, str]:
    claims = replace(GOOD, key=name, team=team, token_id=token_id or f"id-{name}")
    return {"authorization": "Bearer " + token(claims)}


async def test_a_caller_above_its_limit_is_refused_over_http_and_grpc_until_a_new_minute(counted: Counted) -> None:
    await counted.limit(caller_rows_per_minute=10)
    assert await counted.send(key("greedy"), 6) == 200
    assert (await counted.gateway.grpc("ModelInfer", key("greedy") | GRPC_SERVICE | {"x-rows": "4"}, b"x" * 9))[0] == 0
    assert await counted.send(key("quiet"), 9) == 200
    assert await counted.send({}, 5) == 200
    assert await counted.send({"authorization": "Bearer made-up", "fairlead-caller": "quiet"}, 5) == 200
    await counted.until_written(5)
    url = f"http://127.0.0.1:{counted.gateway.port}{PATH}"
    async with httpx.AsyncClient(timeout=20) as client:
        refused = await client.post(url, headers=key("greedy", token_id="id-rotated"))
    assert (refused.status_code, refused.json().keys()) == (429, {"error"})
    assert "too many rows" in refused.json()["error"]
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    code, details = await counted.gateway.grpc("ModelInfer", key("greedy") | GRPC_SERVICE)
    assert (code, "too many rows" in details) == (RESOURCE_EXHAUSTED, True)
    # All requests without a valid key are one caller.
    assert await counted.send({"authorization": "Bearer another"}, 1) == 429
    assert await counted.send(key("quiet"), 0) == 200
    assert await counted.send(key("greedy"), 1, PREVIEW) == 200
    assert await counted.send(key("x", token_id="id-revoked"), 1) == 401
    await counted.until(lambda: b'"attempts":0' in counted.log.files.current.read_bytes())
    counted.next_minute()
    await counted.counter.turn()
    await counted.gateway.push()
    for caller in (key("greedy"), {}):
        assert await counted.send(caller, 1) == 200
    assert (await counted.gateway.grpc("ModelInfer", key("greedy") | GRPC_SERVICE))[0] == 0


async def test_limits_of_a_key_a_team_and_a_service_are_each_of_their_own(counted: Counted) -> None:
    await counted.limit(RowRate(5, key="nightly"), RowRate(7, team="vision"), rows_per_minute=100, access=Access())
    assert await counted.send(key("nightly"), 2) == 200
    assert await counted.send(key("nightly"), 3, PREVIEW) == 200
    assert await counted.send(key("one", "vision"), 4) == 200
    assert await counted.send(key("two", "vision"), 3) == 200
    await counted.until_written(4)
    for path in (PATH, PREVIEW):
        assert await counted.send(key("nightly"), 1, path) == 429
        assert await counted.send(key("three", "vision"), 1, path) == 429
        assert await counted.send(key("three"), 1, path) == 200
    assert await counted.send(key("three"), 90, body=b"x" * 90) == 200
    await counted.until_written(11)
    assert await counted.send(key("three"), 1) == 429
    assert await counted.send(key("three"), 1, PREVIEW) == 200
    assert await counted.send({}, 1) == 401


async def test_a_model_that_says_absurd_rows_uses_up_its_own_callers_limit_as_far_as_their_bytes(
    counted: Counted,
) -> None:
    await counted.limit(RowRate(13, key="tiny"), RowRate(13, key="victim"), caller_rows_per_minute=1000)
    assert await counted.send(key("tiny"), "9" * 20, body=b"x" * 12) == 200
    assert await counted.send(key("tiny"), "1e99", PREVIEW, b"x" * 12) == 200
    assert await counted.send(key("victim"), 1) == 200
    await counted.until_written(3)
    # The absurd ones count twelve and one.
    assert await counted.send(key("tiny"), 1) == 429
    assert await counted.send(key("victim"), 1) == 200
    assert await counted.send({}, 1) == 200


async def test_without_a_limit_nothing_is_counted_and_envoy_has_no_list(counted: Counted) -> None:
    await counted.limit()
    assert await counted.send(key("ci"), 50) == 200
    await counted.until_written(1)
    assert counted.log.refused == []
    assert await counted.send(key("ci"), 50) == 200
