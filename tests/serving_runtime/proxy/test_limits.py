"""Limits of concurrent requests: of the container, and of a caller."""

import asyncio

from tests.serving_runtime._support.http_listener import Client
from tests.serving_runtime._support.proxies import Peer, Proxied, post, proxied

PENDING = "nv_inference_pending_request_count"
IN_FLIGHT = "fairlead_inflight_requests"


class Gate:
    """A container that answers when the test says so.

    Attributes:
        most: requests that it had at once.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.most = 0
        self._now = 0
        self._open = asyncio.Semaphore(0)

    async def script(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            self._now += 1
            self.most = max(self.most, self._now)
            self.bodies.append(asked.body)
            await self._open.acquire()
            self._now -= 1
            await peer.answer(asked.body)

    def answer(self, count: int) -> None:
        for _ in range(count):
            self._open.release()


async def waiting(proxy: Proxied, count: int, name: str = "") -> list[Client]:
    """Return clients whose requests wait for a place."""
    before = await proxy.metric(PENDING)
    headers = (f"fairlead-caller: {name}",) if name else ()
    clients = [await proxy.client(post(f"{name}{number}".encode(), *headers)) for number in range(count)]
    await proxy.until(PENDING, before + count)
    return clients


async def test_requests_beyond_the_limit_wait_and_then_are_refused() -> None:
    gate = Gate()
    async with proxied(gate.script, max_concurrent_requests=2) as proxy:
        begun = [await proxy.client(post(b"begun")) for _ in range(2)]
        await proxy.until(IN_FLIGHT, 2)
        clients = await waiting(proxy, 20)
        assert await proxy.metric(IN_FLIGHT) == 22
        status, headers, body = await proxy.ask(post(b"one more"))
        assert (status, headers["retry-after"]) == (503, "1")
        assert b"as many as --max-concurrent-requests allows" in body
        assert await proxy.failures() == {"REJECTED": 1}
        gate.answer(22)
        assert [(await client.answer())[0] for client in (*begun, *clients)] == [200] * 22
        assert (gate.most, await proxy.metric(PENDING), await proxy.metric(IN_FLIGHT)) == (2, 0, 0)
        assert await proxy.metric("nv_inference_queue_duration_us") > 0


async def test_callers_take_turns_and_the_greedy_one_makes_room() -> None:
    gate = Gate()
    async with proxied(gate.script, max_concurrent_requests=1) as proxy:
        await proxy.client(post(b"begun"))
        await proxy.until(IN_FLIGHT, 1)
        greedy = await waiting(proxy, 10, "greedy")
        polite = await proxy.client(post(b"polite", "fairlead-caller: polite"))
        status, _, body = await greedy[-1].answer()
        assert (status, b"this caller has the most" in body) == (503, True)
        gate.answer(11)
        assert (await polite.answer())[0] == 200
        assert [(await client.answer())[0] for client in greedy[:-1]] == [200] * 9
        assert gate.bodies.index(b"polite") <= 2


async def test_a_waiting_client_that_leaves_frees_its_turn() -> None:
    gate = Gate()
    async with proxied(gate.script, max_concurrent_requests=1) as proxy:
        begun = await proxy.client(post(b"begun"))
        await proxy.until(IN_FLIGHT, 1)
        leaving, staying = await waiting(proxy, 2)
        leaving.writer.close()
        await proxy.until(PENDING, 1)
        gate.answer(2)
        assert [(await client.answer())[0] for client in (begun, staying)] == [200, 200]
        assert (len(gate.bodies), await proxy.failures()) == (2, {"CANCELED": 1})


async def test_a_place_is_free_after_each_kind_of_end() -> None:
    async def script(peer: Peer) -> None:
        body = (await peer.request()).body
        if body == b"stay":
            await peer.gone()
        if body == b"answer":
            await peer.answer(b"")

    async with proxied(script, max_concurrent_requests=1) as proxy:
        assert (await proxy.ask(post(b"leave")))[0] == 502
        client = await proxy.client(post(b"stay"))
        await proxy.until(IN_FLIGHT, 1)
        client.writer.close()
        await proxy.until(IN_FLIGHT, 0)
        assert (await proxy.ask(post(b"answer")))[0] == 200


async def test_a_callers_own_limit_is_kept() -> None:
    gate = Gate()
    async with proxied(gate.script) as proxy:
        headers = ("fairlead-caller: one", "fairlead-caller-limit: 1")
        first = await proxy.client(post(b"1", *headers))
        await proxy.until(IN_FLIGHT, 1)
        status, _, body = await proxy.ask(post(b"2", *headers))
        assert (status, b"spec.limits.perCaller.concurrentRequests" in body) == (429, True)
        gate.answer(2)
        assert (await first.answer())[0] == 200
        assert (await proxy.ask(post(b"3", *headers)))[0] == 200
        assert await proxy.failures() == {}
