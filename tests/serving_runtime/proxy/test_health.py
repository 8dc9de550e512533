"""Health of a container as the proxy answers for it."""

import asyncio
import json

import pytest

from serving_runtime.proxy.connection_pool import ConnectionPool
from serving_runtime.proxy.options import V1, ProxyLimits
from tests.serving_runtime._support.proxies import INFER, Peer, Script, post, proxied

READY = ("/v2/health/ready", "/v2/models/digits/ready", "/v2/models/digits/versions/1/ready")


def answering(answers: dict[str, tuple[int, bytes]]) -> Script:
    """Return a container that answers paths so, and others with 404."""

    async def script(peer: Peer) -> None:
        while True:
            status, body = answers.get((await peer.request()).line.split()[1], (404, b""))
            await peer.answer(body, status)

    return script


async def test_a_v2_container_says_itself_whether_it_is_ready() -> None:
    answers = {"/v2/health/ready": (400, b"")}
    async with proxied(answering(answers)) as proxy:
        for path in READY:
            status, _, body = await proxy.get(path)
            assert (status, json.loads(body)) == (
                503,
                {"ready": False, "error": "the container answers GET /v2/health/ready with 400"},
            )
        assert (await proxy.get("/v2/health/live"))[0] == 200
        answers["/v2/health/ready"] = (200, b"")
        for path in READY:
            assert await proxy.get(path) == (
                200,
                {"fairlead-revision": "digits-00001", "content-type": "application/json", "content-length": "14"},
                b'{"ready":true}',
            )
        assert await proxy.metric("nv_inference_request_success") == 0


@pytest.mark.parametrize(
    ("body", "status", "ready"),
    [
        (b'{"name": "digits", "ready": true}', 200, True),
        (b'{"name": "digits", "ready": false}', 200, False),
        (b'{"name": "digits", "ready": "False"}', 200, False),
        (b'{"model_version_status": [{"state": "AVAILABLE"}]}', 200, True),
        (b"not json", 200, True),
        (b'{"ready": true}', 503, False),
    ],
)
async def test_a_v1_container_is_ready_with_its_model(body: bytes, status: int, *, ready: bool) -> None:
    async with proxied(answering({"/v1/models/digits": (status, body)}), protocol=V1) as proxy:
        for path in READY:
            assert (await proxy.get(path))[0] == (200 if ready else 503)


async def test_a_health_path_stands_in_for_the_protocols_own() -> None:
    async with proxied(answering({"/up?deep=1": (204, b"")}), protocol=V1, health_path="/up?deep=1") as proxy:
        assert (await proxy.get("/v2/health/ready"))[0] == 200


async def test_without_a_container_it_is_neither_live_nor_ready() -> None:
    async with proxied(None) as proxy:
        for path in ("/v2/health/live", *READY):
            status, _, body = await proxy.get(path)
            assert (status, b"does not accept connections" in body) == (503, True)


async def test_a_container_that_does_not_answer_in_time_is_live_and_not_ready() -> None:
    async def script(peer: Peer) -> None:
        await peer.gone()

    async with proxied(script, limits=ProxyLimits(probe_s=0.1)) as proxy:
        status, _, body = await proxy.get("/v2/health/ready")
        assert (status, b"has not answered GET /v2/health/ready in 0.1 s" in body) == (503, True)
        assert (await proxy.get("/v2/health/live"))[0] == 200


async def test_requests_for_health_share_one_question() -> None:
    asked = 0
    came, go_on = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        nonlocal asked
        await peer.request()
        asked += 1
        came.set()
        await go_on.wait()
        await peer.answer()

    async with proxied(script) as proxy:
        clients = [await proxy.client(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(20)]
        clients[0].writer.close()  # its leaving must not end the question of the others
        await asyncio.wait_for(came.wait(), 10)
        go_on.set()
        assert [(await client.answer())[0] for client in clients[1:]] == [200] * 19
        assert asked <= 2


async def test_it_is_not_ready_while_it_drains_and_finishes_what_it_has() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await go_on.wait()
        await peer.answer(b"late")

    async with proxied(script) as proxy:
        request = await proxy.client(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        await proxy.until("fairlead_inflight_requests", 1)
        idle = await proxy.client()
        probe = await proxy.client()
        probe.send(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await probe.answer())[0] == 200
        serving = asyncio.ensure_future(proxy.server.serve())
        proxy.server.stop()
        probe.send(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
        status, headers, body = await probe.answer()
        assert (status, headers["connection"]) == (503, "close")
        assert json.loads(body) == {"ready": False, "error": "the server is shutting down"}
        assert await idle.ended()
        go_on.set()
        status, headers, body = await request.answer()
        assert (status, headers["connection"], body) == (200, "close", b"late")
        assert await asyncio.wait_for(serving, 10) == 0


async def test_a_connection_that_asks_for_health_takes_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended with the question: a request that took it in that moment would never be answered."""
    freed: list[ConnectionPool] = []
    monkeypatch.setattr(ConnectionPool, "on_free", lambda pool, _connection: freed.append(pool))
    async with proxied(answering({"/v2/health/ready": (200, b""), INFER: (200, b"{}")})) as proxy:
        assert (await proxy.get("/v2/health/ready"))[0] == 200
        assert not freed
        assert (await proxy.ask(post(b"{}")))[0] == 200
        assert freed, "as that of a request does"
