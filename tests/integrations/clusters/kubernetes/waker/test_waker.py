"""The waker over gRPC, as Envoy calls it: what waits, what goes on, and how replicas are started."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from integrations.clusters.base import FailureReason
from integrations.clusters.kubernetes.api.resource_types import DEPLOYMENT
from integrations.clusters.kubernetes.waker.calls import read
from integrations.clusters.kubernetes.waker.start_failures import StartFailure, start_failure
from integrations.clusters.kubernetes.waker.waker import Limits
from tests.integrations._support.wakers import DIGITS, QUICK, Asleep, call, running, token, until

WAKES = call(bearer=token())
MADE_AT = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
SECRET = "password=hunter2 on 10.0.0.7"
BRIEF = replace(QUICK, held_s=0.5, failures_s=0.05)
GOES_ON = (0, "")
RESULTS = ("ready", "timed_out", "too_many", "left", "failed")
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


async def test_a_request_goes_to_no_replica_of_before_the_sleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its endpoint is there for a moment after its Deployment was woken again."""
    cluster, looks = Asleep(), Counter[str]()
    mark = cluster.cache.mark
    monkeypatch.setattr(cluster.cache, "mark", lambda *names: (looks.update(["state"]), mark(*names))[1])
    async with running(tmp_path, cluster, replace(QUICK, settle_s=0.5)) as there:
        held = asyncio.create_task(there.status(WAKES))
        await until(lambda: cluster.scaled)
        cluster.scale(1)
        found, before = cluster.ready("digits-00001-before"), looks.total()
        there.waker.changed(found)
        await until(lambda: looks.total() > before)
        cluster.ready()
        await until(lambda: held.done() or looks.total() > before + 1)
        assert not held.done()
        there.waker.changed(cluster.ready("digits-00001-a"))
        assert await held == GOES_ON


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
    assert [after - count for after, count in zip(counted(), before, strict=True)] == [0, 2, 1, 0, 0, 0]


async def test_a_client_that_leaves_waits_no_longer_and_the_start_goes_on(tmp_path: Path) -> None:
    cluster = Asleep()
    async with running(tmp_path, cluster) as there:
        *before, _ = counted()
        sent = there.send(WAKES)
        await until(lambda: there.waker.waiting == 1)
        assert counted() == [*before, 1]
        sent.cancel()
        await until(lambda: there.waker.waiting == 0)
        assert counted() == [*before[:3], before[3] + 1, *before[4:], 0]
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


def pod(name: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


def waits(container: str, reason: str, **more: Any) -> dict[str, Any]:
    return {"name": container, "state": {"waiting": {"reason": reason, "message": SECRET}}, **more}


def ended(container: str, code: int, reason: str = "Error") -> dict[str, Any]:
    ending = {"exitCode": code, "reason": reason, "message": SECRET, "finishedAt": "2026-01-01T00:00:05Z"}
    return {"name": container, "state": {"terminated": ending}}


ENDED = ended("runtime", 1)["state"]
HELD_BACK = waits("runtime", "CrashLoopBackOff", lastState=ENDED)
NO_ROOM = {"type": "PodScheduled", "status": "False", "message": SECRET, "lastTransitionTime": "2026-01-01T00:00:00Z"}
WAS_READY = {"type": "ContainersReady", "status": "False", "lastTransitionTime": "2026-01-01T00:00:02Z"}
NO_QUOTA = {"type": "ReplicaFailure", "status": "True", "message": SECRET, "lastTransitionTime": "2026-01-01T00:00:00Z"}
LATE = "default/digits was asleep, and no replica was ready within 0.5 s: {}; try again soon"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"containerStatuses": [waits("runtime", "ImagePullBackOff")]}, "its image cannot be pulled (ImagePullFailed)"),
        (
            {"containerStatuses": [waits("runtime", "CreateContainerError")]},
            "one of its containers cannot be started (ContainerNotStarted)",
        ),
        ({"containerStatuses": [ended("runtime", 1)]}, "its model cannot be loaded (ModelLoadFailed)"),
        ({"containerStatuses": [ended("runtime", 139)]}, "its runtime ends before it is ready (RuntimeUnhealthy)"),
        ({"containerStatuses": [ended("runtime", 137, "OOMKilled")]}, "it exceeds its memory limit (OOMKilled)"),
        ({"initContainerStatuses": [ended("prepare", 2)]}, "its model cannot be loaded (ModelLoadFailed)"),
        ({"phase": "Failed", "reason": "Evicted", "message": SECRET}, "its node evicted it (Evicted)"),
        ({"conditions": [NO_ROOM]}, "no node has room for it so far (Unschedulable)"),
    ],
)
def test_callers_learn_the_kind_of_a_failure_and_nothing_that_a_pod_says(status: dict[str, Any], why: str) -> None:
    assert str(start_failure({}, [pod("digits-00001-a"), pod("digits-00001-b", **status)], MADE_AT)) == why


@pytest.mark.parametrize(
    ("status", "lasts"),
    [
        ({"containerStatuses": [waits("runtime", "ImagePullBackOff")]}, True),
        ({"containerStatuses": [HELD_BACK]}, True),
        ({"containerStatuses": [{**ended("runtime", 1), "state": {"running": {}}, "lastState": ENDED}]}, False),
        ({"conditions": [NO_ROOM]}, False),
        ({"containerStatuses": [HELD_BACK], "conditions": [WAS_READY]}, False),
    ],
)
def test_a_failure_lasts_once_a_container_was_tried_twice_and_room_may_still_come(
    status: dict[str, Any], lasts: bool
) -> None:
    for after_s, expected in ((10, False), (21, lasts)):
        found = start_failure({}, [pod("digits-00001-a", **status)], MADE_AT + after_s)
        assert found is not None
        assert found.is_lasting is expected
    other = start_failure({}, [pod("digits-00001-a", **status), pod("digits-00001-b")], MADE_AT + 60)
    assert other is not None
    assert not other.is_lasting, "another pod may still come up"


async def test_a_wait_that_takes_too_long_ends_with_the_cause(tmp_path: Path) -> None:
    cluster = Asleep()
    cluster.pods = [pod("digits-00001-a", conditions=[NO_ROOM])]
    async with running(tmp_path, cluster, BRIEF) as there:
        found, body = await there.status(WAKES)
    assert (found, json.loads(body)["error"]) == (503, LATE.format("no node has room for it so far (Unschedulable)"))


async def test_a_pod_that_the_cluster_does_not_make_is_a_cause_and_one_that_ends_is_none(tmp_path: Path) -> None:
    cluster = Asleep()
    leaving = pod("digits-00001-a", containerStatuses=[ended("runtime", 1)])
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z"
    cluster.pods = [leaving]
    async with running(tmp_path, cluster, BRIEF) as there:
        assert "was ready within 0.5 s; try again soon" in (await there.status(WAKES))[1]
        cluster.conditions = [NO_QUOTA]
        cluster.scale(1)
        _, body = await there.status(WAKES)
        assert json.loads(body)["error"] == LATE.format(
            "the cluster does not allow its pod, such as for a quota (NoReplicaMade)"
        )
        cluster.conditions, cluster.pods = [], None  # a role of before
        cluster.scale(1)
        assert "was ready within 0.5 s; try again soon" in (await there.status(WAKES))[1]


async def test_no_request_waits_for_a_replica_that_failed_for_good(tmp_path: Path) -> None:
    cluster = Asleep()
    before = counted()
    async with running(tmp_path, cluster, replace(QUICK, failures_s=0.05)) as there:
        held = [asyncio.create_task(there.status(WAKES)) for _ in range(2)]
        await until(lambda: cluster.scaled and there.waker.waiting == 2)
        cluster.pods = [pod("digits-00001-a", initContainerStatuses=[ended("prepare", 3)])]
        assert {body for _, body in await asyncio.gather(*held)} == {
            '{"error": "default/digits was asleep, and its replica cannot start: its model cannot be loaded '
            '(ModelLoadFailed)"}'
        }
        there.waker.changed(cluster.scale(1))
        there.waker.changed(cluster.ready("digits-00001-b"))
        assert await there.status(WAKES) == GOES_ON
    assert counted()[4] - before[4] == 2


def test_every_reason_has_a_sentence_for_callers() -> None:
    sentences = {str(StartFailure(each)) for each in FailureReason}
    assert len(sentences) == len(FailureReason)


async def test_messages_that_name_no_service_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path, Asleep()) as there:
        for content in (b"\xff\xff", b"", call(bearer=token(), namespace="default")):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await there.send(content)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
