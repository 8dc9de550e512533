"""Requests through the proxy, to a real server and back."""

import asyncio
import json
import time

import pytest

from serving_runtime.proxy.options import ProxyLimits
from tests.serving_runtime._support.proxies import INFER, MODEL, Asked, Peer, post, proxied

FAILED = "nv_inference_request_failure"
IN_FLIGHT = "fairlead_inflight_requests"


async def test_a_request_is_passed_on_and_answered_in_the_name_of_the_revision() -> None:
    asked: list[Asked] = []

    async def script(peer: Peer) -> None:
        while True:
            asked.append(await peer.request())
            await peer.answer(
                b'{"outputs": []}', 201, "X-Of-Container: 1\r\nfairlead-revision: forged\r\nKeep-Alive: 5\r\n"
            )

    async with proxied(script) as proxy:
        client = await proxy.client(
            post(b"{}", "Content-Type: application/json", "TE: trailers", "X-Hop: 1", "Connection: x-hop, host")
        )
        status, headers, body = await client.answer()
        client.send(post(b"again"))
        assert (await client.answer())[0] == 201
        assert proxy.connections == 1
    assert (status, body) == (201, b'{"outputs": []}')
    assert headers == {"fairlead-revision": "digits-00001", "x-of-container": "1", "content-length": "15"}
    assert asked[0].line == f"POST {INFER} HTTP/1.1"
    assert asked[0].headers == {"host": "x", "content-type": "application/json", "content-length": "2"}
    assert [each.body for each in asked] == [b"{}", b"again"]


async def test_bodies_pass_in_both_directions_however_large_and_framed() -> None:
    body = bytes(range(256)) * 20_000
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:70_000], body[70_000:]))
    async with proxied() as proxy:
        assert (await proxy.ask(post(body)))[2] == body
        head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        assert (await proxy.ask(head + chunked + b"0\r\n\r\n"))[2] == body
        status, headers, got = await proxy.ask(head + b"3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n")
        assert (status, headers["content-length"], got) == (200, "3", b"abc")
        assert await proxy.metric("nv_inference_request_success") == 3


async def test_an_answer_streams_piece_by_piece() -> None:
    on = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            await peer.send(b"9\r\ndata: 1\n\n\r\n")
            await on.wait()
            await peer.send(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    async with proxied(script) as proxy:
        client = await proxy.client(post(b"{}", path=f"/v2/models/{MODEL}/generate_stream"))
        status, headers = await client.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert await client.chunk() == b"data: 1\n\n"
        assert await proxy.metric(IN_FLIGHT) == 1
        on.set()
        assert [await client.chunk(), await client.chunk()] == [b"data: 2\n\n", b""]
        client.send(post(b"{}"))
        assert (await client.head())[0] == 200


async def test_an_answer_that_ends_with_its_connection_comes_in_chunks() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")

    async with proxied(script) as proxy:
        client = await proxy.client(post(b"{}"))
        assert (await client.head())[1]["transfer-encoding"] == "chunked"
        assert [await client.chunk(), await client.chunk()] == [b"all of it", b""]
        old = await proxy.client(f"POST {INFER} HTTP/1.0\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        _, headers = await old.head()
        assert headers["connection"] == "close"
        assert "transfer-encoding" not in headers
        assert await asyncio.wait_for(old.reader.read(), 10) == b"all of it"
        assert await proxy.metric("nv_inference_request_success") == 2


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with proxied() as proxy:
        client = await proxy.client(b"".join(post(b"%d" % number) for number in range(40)))
        client.send(post(b"x" * 100_000) + b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [(await client.answer())[2] for _ in range(40)] == [b"%d" % number for number in range(40)]
        assert len((await client.answer())[2]) == 100_000
        assert (await client.answer())[2] == b'{"live":true}'


async def test_head_has_no_body_and_100_continue_is_sent() -> None:
    async with proxied() as proxy:
        client = await proxy.client(f"HEAD {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab".encode())
        assert (await client.head())[1]["content-length"] == "2"
        client.send(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n".encode())
        assert (await client.head())[0] == 100
        client.send(b"ab")
        assert (await client.answer())[2] == b"ab"


async def test_statuses_are_counted_by_whose_fault_they_are() -> None:
    statuses = iter([200, 204, 404, 429, 500, 503])

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            status = next(statuses)
            if status == 204:
                await peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
            else:
                await peer.answer(status=status)

    async with proxied(script) as proxy:
        client = await proxy.client()
        for status in (200, 204, 404, 429, 500, 503):
            client.send(post(b"{}"))
            assert (await client.answer())[0] == status
        assert await proxy.metric("nv_inference_request_success", model=MODEL) == 2
        assert await proxy.failures() == {"OTHER": 2, "BACKEND": 2}
        assert await proxy.metric("fairlead_inference_request_duration_us_count") == 2
        assert (await proxy.metric(IN_FLIGHT), proxy.connections) == (0, 1)


async def test_other_paths_are_passed_on_and_not_counted() -> None:
    async with proxied(max_concurrent_requests=1) as proxy:
        assert (await proxy.ask(post(b"x", path="/v2/models/other/infer")))[2] == b"x"
        assert (await proxy.get("/v2/models/digits"))[0] == 200
        assert await proxy.metric("nv_inference_request_success") == 0


async def test_without_a_container_the_answer_is_503() -> None:
    async with proxied(None) as proxy:
        status, headers, body = await proxy.ask(post(b"{}"))
        assert (status, headers["fairlead-revision"]) == (503, "digits-00001")
        assert "does not accept connections" in json.loads(body)["error"]
        assert await proxy.failures() == {"BACKEND": 1}


async def test_a_container_that_leaves_without_an_answer_is_a_502() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    async with proxied(script) as proxy:
        status, _, body = await proxy.ask(post(b"{}"))
        assert (status, json.loads(body)) == (502, {"error": "the container closed the connection without an answer"})
        assert await proxy.failures() == {"BACKEND": 1}


@pytest.mark.parametrize("begun", [b"Content-Length: 10\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])
async def test_a_broken_answer_is_not_taken_for_a_whole_one(begun: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + begun)

    async with proxied(script) as proxy:
        client = await proxy.client(post(b"{}"))
        rest = await asyncio.wait_for(client.reader.read(), 10)
        assert b"abc" in rest
        assert not rest.endswith(b"0\r\n\r\n")
        assert await proxy.failures() == {"BACKEND": 1}


async def test_a_client_that_leaves_ends_its_request() -> None:
    got, ended = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        got.set()
        await peer.gone()
        ended.set()

    async with proxied(script) as proxy:
        client = await proxy.client(post(b"{}"))
        await asyncio.wait_for(got.wait(), 10)
        client.writer.close()
        await asyncio.wait_for(ended.wait(), 10)
        await proxy.until(FAILED, 1, reason="CANCELED")
        assert await proxy.metric(IN_FLIGHT) == 0


async def test_an_early_answer_ends_the_connections() -> None:
    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.answer(b"too large", 413)
        await peer.gone()

    async with proxied(script) as proxy:
        head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n".encode()
        status, headers, body = await proxy.ask(head + bytes(70_000))
        assert (status, headers["connection"], body) == (413, "close", b"too large")
        assert await proxy.failures() == {"OTHER": 1}


async def test_the_duration_is_the_containers_not_the_upload_nor_the_slow_reader() -> None:
    size = 8 * 2**20

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer(bytes(size))

    async with proxied(script) as proxy:
        began = time.monotonic()
        client = await proxy.client(post(bytes(200_000))[:100_000])
        await proxy.until(IN_FLIGHT, 1)
        await asyncio.sleep(0.3)  # the client takes its time
        client.send(post(bytes(200_000))[100_000:])
        await client.head()
        await asyncio.sleep(0.3)
        await asyncio.wait_for(client.reader.readexactly(size), 10)
        await proxy.until("nv_inference_request_success", 1)
        taken_us = await proxy.metric("fairlead_inference_request_duration_us_sum")
        assert taken_us / 1e6 < time.monotonic() - began - 0.6


async def test_a_connection_that_the_container_may_close_is_not_used_again() -> None:
    async with proxied(limits=ProxyLimits(kept_idle_s=0)) as proxy:
        client = await proxy.client()
        for number in range(3):
            client.send(post(b"%d" % number))
            assert (await client.answer())[2] == b"%d" % number
        assert proxy.connections == 3
