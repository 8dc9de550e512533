"""Attacks on the waker of services that are asleep: whoever reaches its port, without a key that may call them.

The waker is in the cluster's network, and every pod may connect. All it can be brought to do is to start one replica
of a service for a key that may call it.
"""

from pathlib import Path

import grpc
import pytest

from integrations.clusters.base import Access
from integrations.clusters.kubernetes.waker.calls import METHOD
from tests.integrations._support.wakers import DIGITS, Asleep, Running, call, running, token, until

SENTENCES = ("x" * 5000, "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", "\x00", "null.null.null", "WyJhIl0.WyJhIl0.AA")


async def answered(there: Running, content: bytes) -> int | grpc.StatusCode:
    try:
        return (await there.status(content))[0]
    except grpc.aio.AioRpcError as error:
        return error.code()


async def test_who_may_not_call_it_wakes_nothing_and_costs_the_api_server_nothing(tmp_path: Path) -> None:
    cluster = Asleep(access=Access(teams=("risk",)))
    async with running(tmp_path, cluster) as there:
        for bearer in (*SENTENCES, token(), token(services=("*",), token_id="2" * 32)):
            assert (await there.status(call(bearer=bearer)))[0] == 0
        for path in ("/", "", "/v2/../v2/models/digits/infer", "/%00", "/" * 5000, "/serving/default/other/v2"):
            assert (await there.status(call(path, "a.b.c")))[0] == 0
        for name in ("../digits", "digits/scale", "digits-00001/../other", "*", ""):
            for part in DIGITS:
                found = call(bearer=token(team="risk"), **{**DIGITS, part: name})
                assert await answered(there, found) in (0, grpc.StatusCode.INVALID_ARGUMENT)
    assert (cluster.reads, cluster.lists, cluster.scaled) == (0, 0, [])


async def test_a_key_of_one_service_holds_no_place_of_others_beyond_the_bound(tmp_path: Path) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        held = [there.send(call(bearer=token())) for _ in range(40)]
        await until(lambda: cluster.scaled and there.waker.waiting == 3 and sum(each.done() for each in held) == 37)
        assert len(cluster.scaled) == 1
        for each in held:
            each.cancel()
        await until(lambda: not there.waker.waiting)


async def test_large_messages_and_other_methods_are_refused_unread(tmp_path: Path) -> None:
    async with running(tmp_path, Asleep()) as there:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await there.send(call(f"/{'x' * (1 << 20)}", token()))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        async with grpc.aio.insecure_channel(f"127.0.0.1:{there.server.port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as unknown:
                await channel.unary_unary(f"{METHOD}All")(b"", timeout=20)
        assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert (await there.status(call()))[0] == 0
