"""Attacks on the proxy in front of custom containers: by clients, and by the container."""

import asyncio
import json
import re
import time
from typing import cast

import pytest

from serving_runtime.proxy.options import ProxyLimits
from tests.serving_runtime._support.http_listener import Client, until
from tests.serving_runtime._support.proxies import INFER, Asked, Peer, Proxied, post, proxied

HEAD = f"POST {INFER} HTTP/1.1\r\nHost: x\r\n".encode()
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE_S = 10


class Witness:
    """A container that notes each request and answers it."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def script(self, peer: Peer) -> None:
        while True:
            self.asked.append(await peer.request())
            await peer.answer()

    @property
    def lines(self) -> list[str]:
        return [each.line for each in self.asked]


async def all_of(client: Client) -> bytes:
    """Return everything until the proxy closes the connection."""
    return await asyncio.wait_for(client.reader.read(), PATIENCE_S)


async def status_of(proxy: Proxied, content: bytes) -> int:
    """Return the status of the only answer, after which the connection ends."""
    answer = await all_of(await proxy.client(content))
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", answer)) == 1, answer
    assert b"Connection: close\r\n" in answer
    return int(answer.split()[1])


@pytest.mark.parametrize(
    ("content", "status"),
    [
        # two lengths
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Content-Length: 0, 40\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Content-Length: +3\r\n\r\nabc", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 0x10\r\n\r\n", 400),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n", 400),
        # codings
        (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (f"POST {INFER} HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode() + SMUGGLED, 400),
        # chunks
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n0\r\n\r\n", 400),
        # heads
        (HEAD + b"X: a\r\n folded: b\r\n\r\n", 400),
        (HEAD + b"X: a\nInjected: b\r\n\r\n", 400),
        (HEAD + b"X: a\rInjected: b\r\n\r\n", 400),
        (HEAD + b"X\0: a\r\n\r\n", 400),
        (HEAD + b"X: a\0b\r\n\r\n", 400),
        (HEAD + b": a\r\n\r\n", 400),
        (HEAD + b"Host: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET smuggled HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET /\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400),
        # no proxy for others
        (b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\nSSH-2.0", 405),
        (b"GET ftp://other/x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        # another protocol
        (HEAD + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 40\r\n\r\n" + SMUGGLED, 501),
        (HEAD + b"Expect: miracles\r\n\r\n", 417),
        # sizes
        (HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (HEAD + b"X: a\r\n" * 20_000 + b"\r\n", 431),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (HEAD + b"Content-Length: 200001\r\n\r\n", 413),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n186a0\r\n" + b"a" * 100_000 + b"\r\n186a2\r\n" + b"a" * 100_002,
            413,
        ),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 140_000, 431),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: a\r\n" * 30_000, 431),
    ],
)
async def test_a_request_of_two_meanings_or_without_end_is_refused(content: bytes, status: int) -> None:
    witness = Witness()
    async with proxied(witness.script, max_input_bytes=200_000, limits=ProxyLimits(linger_s=0.1)) as proxy:
        assert await status_of(proxy, content) == status
        assert "smuggled" not in " ".join(witness.lines)
        assert (await proxy.ask(post(b"{}")))[0] == 200


@pytest.mark.parametrize("target", [b"http://127.0.0.1:22/x", b"HTTP://user@other/x"])
async def test_an_absolute_target_goes_to_the_container_alone(target: bytes) -> None:
    witness = Witness()
    async with proxied(witness.script) as proxy:
        assert (await proxy.ask(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % target))[0] == 200
    assert witness.lines == ["GET /x HTTP/1.1"]
    assert witness.asked[0].headers["host"] == target.decode().split("/")[2]


async def test_a_client_cannot_drop_headers_by_naming_them_nor_send_trailers_as_headers() -> None:
    witness = Witness()
    async with proxied(witness.script) as proxy:
        await proxy.ask(HEAD + b"Connection: Host, Content-Length, close\r\nContent-Length: 2\r\n\r\nab")
        await proxy.ask(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nfairlead-caller: other\r\nHost: y\r\n\r\n"
        )
    for asked in witness.asked:
        assert asked.headers == {"host": "x", "content-length": "2"}
        assert asked.body == b"ab"


async def test_upgrades_are_not_offered_to_the_container() -> None:
    witness = Witness()
    async with proxied(witness.script) as proxy:
        client = await proxy.client(
            b"GET /x HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + SMUGGLED
        )
        assert (await all_of(client)).count(b"HTTP/1.1 200") == 1
    assert [(each.line, each.headers) for each in witness.asked] == [("GET /x HTTP/1.1", {"host": "x"})]


async def test_a_slow_client_takes_no_place_at_the_container() -> None:
    witness = Witness()
    async with proxied(witness.script, max_concurrent_requests=2) as proxy:
        slow = [await proxy.client(HEAD + b"Content-Length: 60000\r\n\r\n" + bytes(59_000)) for _ in range(20)]
        assert (await proxy.ask(post(b"{}")))[0] == 200
        assert (len(witness.asked), await proxy.metric("fairlead_inflight_requests")) == (1, 0)
        for client in slow:
            client.send(bytes(1_000))
        assert [(await client.answer())[0] for client in slow] == [200] * 20


async def test_a_client_that_does_not_read_holds_the_container_back_in_bounded_memory() -> None:
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await peer.send(bytes(100_000))
            sent += 100_000

    async with proxied(script) as proxy:
        await proxy.client(post(b"{}"))
        before = -1
        async with asyncio.timeout(PATIENCE_S):
            while sent != before:
                before = sent
                await asyncio.sleep(0.3)
        assert 0 < sent < 64 * 2**20  # the kernel's buffers


async def test_health_requests_without_end_of_a_client_that_does_not_read_are_not_read_either() -> None:
    async with proxied() as proxy:
        client = await proxy.client()
        request = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
        cast(asyncio.Transport, client.writer.transport).pause_reading()
        taken = 0
        async with asyncio.timeout(60):
            while True:
                client.send(request)
                taken += len(request)
                try:
                    await asyncio.wait_for(client.writer.drain(), 0.5)
                except TimeoutError:
                    break
        assert taken < 128 * 2**20
        assert (await proxy.ask(post(b"{}")))[0] == 200


BROKEN = [
    b"garbage\r\n\r\n",
    b"\0" * 100,
    b"HTTP/1.1 banana\r\n\r\n",
    b"HTTP/1.1 700 X\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nX: a\0\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\nInjected: b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 9,
    b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 30_000,
]


@pytest.mark.parametrize("answer", BROKEN)
async def test_an_answer_that_is_not_http_is_an_error_of_the_model(answer: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer)
        await peer.gone()

    async with proxied(script) as proxy:
        status, headers, body = await proxy.ask(post(b"{}"))
        assert (status, set(headers)) == (502, {"fairlead-revision", "content-type", "content-length"})
        assert "the container" in json.loads(body)["error"]
        assert await proxy.failures() == {"BACKEND": 1}


@pytest.mark.parametrize(
    "begun", [b"Content-Length: 9\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"]
)
async def test_an_answer_that_turns_invalid_ends_its_connection(begun: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + begun)

    async with proxied(script) as proxy:
        answer = await all_of(await proxy.client(post(b"{}")))
        assert answer.count(b"HTTP/1.1 ") == 1
        assert not answer.endswith(b"0\r\n\r\n")
        assert await proxy.failures() == {"BACKEND": 1}


@pytest.mark.parametrize("late", [False, True])
async def test_what_follows_an_answer_reaches_nobody(late: bool) -> None:
    extra = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + (b"" if late else extra))
        if late:
            await peer.send(extra)
        await peer.gone()

    async with proxied(script) as proxy:
        client = await proxy.client()
        for _ in range(5):
            client.send(post(b"{}"))
            status, _, body = await client.answer()
            assert status in (200, 502)
            assert body != b"forged"
            await asyncio.sleep(0.02)
        assert proxy.connections == 5


async def test_a_container_cannot_speak_for_the_platform() -> None:
    forged = (
        "Fairlead-Rows: 1000000\r\nfairlead-revision: other\r\nX-Envoy-Immediate-Health-Check-Fail: 1\r\nX-Own: 1\r\n"
    )

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(headers=forged)

    async with proxied(script) as proxy:
        _, headers, _ = await proxy.ask(post(b"{}"))
        assert headers == {"fairlead-revision": "digits-00001", "x-own": "1", "content-length": "2"}


async def test_a_silent_container_is_given_up() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        for _ in range(1000):  # parts of a head are no progress
            await peer.send(b"HTTP/1.1 200 OK\r\n" if not _ else b"X: a\r\n")
            await asyncio.sleep(0.05)

    async with proxied(script, limits=ProxyLimits(silence_s=0.5)) as proxy:
        began = time.monotonic()
        status, _, body = await proxy.ask(post(b"{}"))
        assert (status, b"no progress" in body) == (504, True)
        assert time.monotonic() - began < PATIENCE_S
        assert await proxy.failures() == {"BACKEND": 1}


async def test_a_container_that_does_not_read_stops_the_upload_in_bounded_memory() -> None:
    async def script(peer: Peer) -> None:
        await peer.head()
        cast(asyncio.Transport, peer.writer.transport).pause_reading()
        await asyncio.Event().wait()

    async with proxied(script, max_input_bytes=2**40) as proxy:
        client = await proxy.client(HEAD + b"Content-Length: %d\r\n\r\n" % 2**39)
        taken = 0
        async with asyncio.timeout(60):
            while True:
                client.send(bytes(2**20))
                taken += 2**20
                try:
                    await asyncio.wait_for(client.writer.drain(), 0.5)
                except TimeoutError:
                    break
        assert taken < 128 * 2**20


async def test_versions_in_paths_make_no_series() -> None:
    async with proxied() as proxy:
        for version in range(50):
            assert (await proxy.ask(post(b"{}", path=f"/v2/models/digits/versions/{version}/infer")))[0] == 200
        assert await proxy.metric("nv_inference_request_success", version="1") == 50


@pytest.mark.parametrize("begun", [b"GE", HEAD + b"X: a", HEAD + b"Content-Length: 9\r\n\r\nabc"])
async def test_a_request_that_does_not_arrive_in_time_is_refused(begun: bytes) -> None:
    async with proxied() as proxy:
        client = await proxy.client(begun)
        listener = proxy.server._http
        await until(lambda: any(each._parser.current for each in listener._connections))
        (connection,) = listener._connections
        connection.sweep(asyncio.get_running_loop().time() + 20)
        connection.sweep(asyncio.get_running_loop().time() + 40)
        status, headers, body = await client.answer()
        assert (status, headers["connection"], b"in time" in body) == (408, "close", True)
