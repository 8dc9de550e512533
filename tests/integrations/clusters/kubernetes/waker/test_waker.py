"""The waker over gRPC, as Envoy calls it: what waits, what goes on, and how replicas are started."""

import asyncio
import json
from pathlib import Path

import grpc
import pytest
from prometheus_client import REGISTRY

from integrations.clusters.kubernetes.api.resource_types import DEPLOYMENT
from integrations.clusters.kubernetes.waker.calls import read
from integrations.clusters.kubernetes.waker.waker import Limits
from tests.integrations._support.wakers import DIGITS, QUICK, Asleep, call, running, token, until

WAKES = call(bearer=token())
GOES_ON = (0, "")
RESULTS = ("ready", "timed_out", "too_many", "left")
GRPC = "/inference.GRPCInferenceService/{}"


def counted() -> list[float]:
    """Return how many requests there were by each result, and how many wait now."""
    named = [("fairlead_waker_requests_total", {"result": each}) for each in RESULTS]
    found = [REGISTRY.get_sample_value(*each) for each in (*named, ("fairlead_waker_held_requests", {}))]
    return [each or 0.0 for each in found]


async def test_requests_wait_for_one_replica_that_is_started_once(tmp_path: Path) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        held = [asyncio.create_task(there.status(WAKES)) for _ in range(3)]
        await until(lambda: cluster.scaled and there.waker.waiting == 3)
        there.waker.changed(cluster.scale(1))
        assert not any(each.done() for each in held)
        there.waker.changed(cluster.ready("digits-00001-a"))
        assert await asyncio.gather(*held) == [GOES_ON] * 3
        assert cluster.scaled == [(1, "fairlead-waker")]
        assert not there.waker.waiting
        assert await there.status(WAKES) == GOES_ON
        there.waker.changed(cluster.ready())
        there.waker.changed(cluster.scale(0))
        again = asyncio.create_task(there.status(WAKES))
        await until(lambda: len(cluster.scaled) == 2)
        again.cancel()


async def test_what_may_not_be_waited_for_goes_on_to_envoys_own_filters(tmp_path: Path) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        assert await there.status(call()) == GOES_ON
        assert await there.status(call(bearer=token(services=("default/other",)))) == GOES_ON
        assert await there.status(call(bearer=token(), **{**DIGITS, "revision": "digits-00002"})) == GOES_ON
        cluster.cache.lost(DEPLOYMENT, "")
        assert await there.status(WAKES) == GOES_ON
    stopped = Asleep(slept_at="")
    async with running(tmp_path, stopped) as there:
        assert await there.status(WAKES) == GOES_ON
    assert not cluster.scaled
    assert not stopped.scaled


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/serving/default/digits/v2/health/live", {"live": True}),
        ("/v2/health/ready?verbose=1", {"ready": True}),
        ("/v2/models/digits/ready", {"name": "digits", "ready": True}),
        ("/v2/models/digits/versions/2/ready", {"name": "digits", "ready": True}),
        ("/serving/default/digits/v1/models/digits", {"name": "digits", "ready": True}),
    ],
)
async def test_probes_are_answered_and_wake_nothing(tmp_path: Path, path: str, body: object) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        status, said = await there.status(call(path, token(), "GET"))
        assert (status, json.loads(said)) == (200, body)
        assert await there.status(call(path, "", "GET")) == GOES_ON
    assert not cluster.reads


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v2/models/digits/stats", "GET"),
        (GRPC.format("ServerLive"), "POST"),
        (GRPC.format("ModelReady"), "POST"),
        ("/grpc.health.v1.Health/Watch", "POST"),
    ],
)
async def test_what_only_a_running_replica_knows_is_refused(tmp_path: Path, path: str, method: str) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        status, said = await there.status(call(path, token(), method))
    assert status == 503
    assert "service default/digits is asleep" in said
    assert not cluster.reads


async def test_metadata_and_inference_wake() -> None:
    for path, method in (
        ("/v2/models/digits", "GET"),
        ("/v1/models/digits:predict", "POST"),
        (GRPC.format("ModelInfer"), "POST"),
        (GRPC.format("ModelStreamInfer"), "POST"),
        (GRPC.format("ModelMetadata"), "POST"),
    ):
        found = read(call(path, method=method))
        assert not found.is_probe
        assert not found.needs_replica


async def test_no_more_wait_than_may_and_none_longer(tmp_path: Path) -> None:
    cluster = Asleep()
    before = counted()
    async with running(tmp_path, cluster, Limits(of_service=2, of_all=9, held_s=0.5)) as there:
        held = [asyncio.create_task(there.status(WAKES)) for _ in range(2)]
        await until(lambda: there.waker.waiting == 2)
        assert await there.status(WAKES) == (
            503,
            '{"error": "default/digits is asleep, and as many requests wait for its first replica as may; '
            'try again soon"}',
        )
        for status, body in await asyncio.gather(*held):
            assert (status, json.loads(body)["error"]) == (
                503,
                "default/digits was asleep, and no replica was ready within 0.5 s; try again soon",
            )
        assert not there.waker.waiting
    assert [after - count for after, count in zip(counted(), before, strict=True)] == [0, 2, 1, 0, 0]


async def test_a_client_that_leaves_waits_no_longer_and_the_start_goes_on(tmp_path: Path) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        *before, _ = counted()
        sent = there.send(WAKES)
        await until(lambda: there.waker.waiting == 1)
        assert counted() == [*before, 1]
        sent.cancel()
        await until(lambda: there.waker.waiting == 0)
        assert counted() == [*before[:3], before[3] + 1, 0]
        await until(lambda: cluster.scaled)


async def test_a_refused_start_is_tried_again(tmp_path: Path) -> None:
    cluster = Asleep()
    cluster.refusals = [403, 409, 500]
    async with running(tmp_path, cluster, QUICK) as there:
        held = asyncio.create_task(there.status(WAKES))
        await until(lambda: cluster.scaled)
        cluster.scale(1)
        there.waker.changed(cluster.ready("digits-00001-a"))
        assert await held == GOES_ON
    assert cluster.reads == 4


async def test_messages_that_name_no_service_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path, Asleep()) as there:
        for content in (b"\xff\xff", b"", call(bearer=token(), namespace="default")):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await there.send(content)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
