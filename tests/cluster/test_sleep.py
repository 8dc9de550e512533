"""Services that sleep behind Envoy Gateway: their requests wait in Envoy until a first replica is ready."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import grpc
import httpx
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from access.services.gateways import caller_keys as keys_now
from access.services.gateways import push_to
from access.services.keys import key_create
from accounts.models import Team
from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from deployments.models import InferenceService, Revision
from deployments.reconcile.reconciler import Outcome
from deployments.services import service_apply
from deployments.turns.sweep import sweep
from events.models import Event
from integrations.clusters.kubernetes.observe.drift import FIELD_MANAGER, WAKER, is_woken, replicas_owners
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.guarded import ROUTES, WITHIN_S, token
from tests.cluster._support.kubeconfigs import flat
from tests.cluster._support.node.kubelet import address
from tests.cluster._support.node.service_proxy import ServiceProxy
from tests.cluster._support.platform import OnKubernetes
from tests.cluster._support.sleeper import NAME, OpenStream, Sleeper, serving
from tests.cluster._support.waker_process import REFERENCE, WakerProcess, install, lead_to, remove
from tests.cluster.harness import CLAIM, REAL_RUNTIME, UNRULY_RUNTIME, Harness, harness, image_of
from tests.cluster.plane import ControlPlane
from tests.deployments._support.cluster_files import LEAST
from tests.integrations._support.runtimes import infer_json, until

pytestmark = pytest.mark.cluster
REAL_IMAGE = "fairlead/real-runtime:test"
SLOW = {"max_batch_size": 1000, "dynamic_batching": {"max_queue_delay_microseconds": 2_500_000}}
"""A request waits so long for others, and is in flight meanwhile."""
LARGE = b"x" * (3 << 20)
"""Far more than Envoy's buffers have."""
IP, OTHER_IP = (f"10.{second}.{os.getpid() // 256 % 256}.{os.getpid() % 256}" for second in (63, 61))


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder, proxy = tmp_path_factory.mktemp("sleep"), ServiceProxy(plane)
    images = {REAL_IMAGE: image_of(REAL_RUNTIME)}
    try:
        with (
            harness(plane, folder, runtime=UNRULY_RUNTIME, images=images, gateway_of=EnvoyGateway) as running,
            proxy.following("default"),
            address(IP),
        ):
            yield running
    finally:
        proxy.close()


@pytest.fixture(scope="module")
def waker(cluster: Harness, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WakerProcess]:
    install(plane, IP)
    process = WakerProcess(plane, tmp_path_factory.mktemp("waker"), IP)
    process.start()
    yield process
    process.end()
    remove(plane)


@dataclass
class WholePlatform(OnKubernetes):
    """The control plane on the cluster: its sweeps, in real time, by a driver of the stored cluster file."""

    clock: Callable[[], datetime] = timezone.now  # type: ignore[assignment]  # in place of one that is moved by hand
    registered: Cluster = field(kw_only=True)

    def turn(self, *, seconds: float = 0.0, settle: bool = True) -> Outcome:
        sweep(self.registered)
        return Outcome.DONE if InferenceService.objects.exists() else Outcome.REMOVED

    def is_asleep(self) -> bool:
        return bool(self.view().revisions[0].asleep_since)


@pytest.fixture
def sleeper(cluster: Harness, waker: WakerProcess) -> Iterator[Sleeper]:
    with serving(cluster) as found:
        yield found


@pytest.fixture
def platform(
    db: None, cluster: Harness, waker: WakerProcess, plane: ControlPlane, settings: Settings
) -> Iterator[WholePlatform]:
    settings.RECONCILE_INTERVAL_S = 0.5
    gateway, options = cluster.options.gateway, cluster.options
    file = {
        **LEAST,
        "connection": {"kubeconfig": flat(plane.kubeconfig)},
        "gateway": {"url": cluster.gateway.url, "name": gateway.name, "namespace": gateway.namespace},
        "runtimeImage": REAL_IMAGE,
        "artifacts": {"claim": CLAIM, "root": options.artifacts_root},
        "preStop": "1s",
        "waker": asdict(REFERENCE),
    }
    registered, _ = cluster_apply(document=file, name=None, actor="alice", now=timezone.now())
    found = WholePlatform(harness=cluster, registered=registered)
    yield found
    found.remove()


def test_requests_wait_in_envoy_for_the_first_replica_and_others_wake_nothing(
    cluster: Harness, sleeper: Sleeper
) -> None:
    slept_at = time.time()
    sleeper.sleep(slept_at)
    assert (sleeper.post(""), sleeper.post("a.b.c"), sleeper.post(token(services=("prod/*",)))) == (401, 401, 403)
    assert sleeper.post(token(token_id="2" * 32)) == 403
    probe = sleeper.client.get(ROUTES["health"][1], headers={"authorization": f"Bearer {token()}"})
    assert (probe.status_code, probe.json()) == (200, {"ready": True})
    assert sleeper.call("ModelReady", token()) == "UNAVAILABLE"
    assert sleeper.deployment()["spec"]["replicas"] == 0

    with ThreadPoolExecutor(8) as pool:
        stream = pool.submit(sleeper.stream)
        over_http2 = pool.submit(sleeper.post_over_http2, cluster.gateway.url)
        asked = [pool.submit(sleeper.post, token(), content) for content in (b"{}", b"{}", LARGE)]
        calls = [pool.submit(sleeper.call, method, token()) for method in ("ModelInfer", "ModelMetadata")]
        assert [each.result(90) for each in asked] == [200] * 3
        assert [each.result(90) for each in calls] == ["OK"] * 2
        assert over_http2.result(90) == "200 2"
        assert stream.result(90) == 1
    assert {each.manager for each in replicas_owners(sleeper.deployment())} == {WAKER}
    seen = sleeper.driver.observe("default", "digits").revisions[0]
    assert seen.slept_at == slept_at
    assert seen.woken_at is not None
    assert slept_at - 1 <= seen.woken_at <= time.time()  # of whole seconds

    sleeper.generation -= 1  # the reconciler, which does not know it yet
    sleeper.apply(0, slept_at, lambda: sleeper.post(token()) == 200, "it goes on to answer")
    assert sleeper.deployment()["spec"]["replicas"] == 1
    stopped, statuses = threading.Event(), set[int]()

    def ask() -> None:
        while not stopped.is_set():
            statuses.add(sleeper.post(token()))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        sleeper.apply(1, slept_at, lambda: not sleeper.routing(), "requests go to its pods again")
    finally:
        stopped.set()
        asking.join()
    assert statuses == {200}
    assert {each.manager for each in replicas_owners(sleeper.deployment())} == {FIELD_MANAGER, WAKER}
    sleeper.apply(0, slept_at + 60, lambda: not sleeper.pods(), "it sleeps again")
    assert {each.manager for each in replicas_owners(sleeper.deployment())} == {FIELD_MANAGER}


def test_without_a_waker_requests_end_soon_and_what_is_awake_answers(sleeper: Sleeper, waker: WakerProcess) -> None:
    waker.kill()
    try:
        assert sleeper.post(token()) == 200, "it is awake"
        slept_at = time.time()
        sleeper.sleep(slept_at)
        assert sleeper.post(token()) == 503
        assert not sleeper.deployment()["spec"]["replicas"]
    finally:
        waker.start()
    until(lambda: sleeper.call("ModelInfer", token()) == "OK", "a gRPC call wakes it", WITHIN_S)

    sleeper.apply(1, slept_at, lambda: not sleeper.routing(), "the reconciler knows that it is awake")
    sleeper.sleep(slept_at + 60)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(sleeper.post, token())
        until(lambda: sleeper.deployment()["spec"]["replicas"], "the request wakes it", WITHIN_S)
        waker.kill()
        try:
            assert held.result(90) in (200, 503)
            until(lambda: sleeper.post(token()) == 200, "another try is answered without the waker", WITHIN_S)
        finally:
            waker.start()


def test_requests_that_come_while_a_service_goes_to_sleep_wake_it_again(cluster: Harness, waker: WakerProcess) -> None:
    stopped, statuses = threading.Event(), Counter[int]()

    def ask(sleeper: Sleeper) -> None:
        while not stopped.is_set():
            statuses[sleeper.infer().status_code] += 1

    with serving(cluster, REAL_IMAGE) as sleeper, ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(ask, sleeper)
        try:
            for number in range(2):
                slept_at, before = time.time() + number, statuses.total()
                sleeper.apply(0, slept_at, lambda: is_woken(sleeper.deployment()), "a request woke it")
                until(lambda: statuses.total() > before + 20, "requests are answered", WITHIN_S)  # noqa: B023
                sleeper.apply(1, slept_at, lambda: not sleeper.routing(), "requests go to its pods again")
        finally:
            stopped.set()
    assert statuses.keys() == {200}, statuses


def test_callers_learn_why_a_replica_cannot_start(sleeper: Sleeper) -> None:
    slept_at = time.time()
    sleeper.sleep(slept_at)
    sleeper.revision = replace(sleeper.revision, model_config={"no_such_field": 1})
    sleeper.apply(0, slept_at, lambda: True, "it sleeps on, with a configuration that no retry helps")
    answer = sleeper.infer()
    assert answer.status_code == 503
    assert answer.json() == {
        "error": "default/digits was asleep, and its replica cannot start: its model cannot be loaded (ModelLoadFailed)"
    }
    assert answer.headers["retry-after"] == "5"


def test_two_wakers_share_the_requests_and_one_that_ends_answers_what_it_holds(
    sleeper: Sleeper, waker: WakerProcess, plane: ControlPlane, tmp_path: Path
) -> None:
    other = WakerProcess(plane, tmp_path, OTHER_IP)
    ready = 'fairlead_waker_requests_total{result="ready"}'
    with address(OTHER_IP):
        other.start()
        try:
            lead_to(plane, IP, OTHER_IP)
            until(lambda: sleeper.post(token()) == 200 and other.is_called(), "Envoy knows both", WITHIN_S)
            before, slept_at = waker.counted(ready), time.time()
            sleeper.sleep(slept_at)
            with ThreadPoolExecutor(16) as pool:
                asked = [pool.submit(sleeper.post, token()) for _ in range(16)]
                held = "fairlead_waker_held_requests"
                until(lambda: other.counted(held), "it holds some", WITHIN_S)
                other.end()
                assert [each.result(90) for each in asked] == [200] * 16
            assert 0 < waker.counted(ready) - before < 16
        finally:
            lead_to(plane, IP)
            other.end()


def test_the_control_plane_lets_a_quiet_service_sleep_and_knows_who_woke_it(
    platform: WholePlatform, cluster: Harness
) -> None:
    """A stream that sends requests keeps it awake; one that is silent does not, and its client tries again."""
    platform.version(1)
    behavior = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 10}}}
    document = platform.document(policy=None, replicas=0, autoScaling=behavior)
    document["spec"] |= {"cluster": platform.registered.name, "access": {"keys": ["ci"]}}
    service_apply(document=document, namespace=None, name=None, actor="alice", now=timezone.now())
    bearer = key_create(
        name="ci",
        team=Team.objects.get(name="default"),
        user=None,
        services=["*"],
        lifetime=timedelta(days=1),
        actor="alice",
        now=timezone.now(),
    ).token
    platform.until_so(lambda: platform.view().phase == "Ready")
    push_to(platform.registered, keys_now(now=timezone.now()), clock=timezone.now)

    def post() -> int:
        headers = {"authorization": f"Bearer {bearer}"}
        url = f"{cluster.gateway.url}{ROUTES['main'][1]}"
        return httpx.post(url, content=infer_json(), headers=headers, timeout=90, trust_env=False).status_code

    until(lambda: post() == 200, "the key is valid", WITHIN_S)
    with grpc.insecure_channel(cluster.gateway.url.removeprefix("http://")) as channel:
        stream, began = OpenStream(channel, bearer), time.monotonic()
        while time.monotonic() < began + 11:
            stream.send()
            assert stream.answers(1) == [""]
            for _ in range(4):
                platform.turn()
                time.sleep(0.5)
            assert not platform.is_asleep(), "a stream that sends requests is not quiet"
        platform.until_so(platform.is_asleep)
        assert time.monotonic() < began + 40
        assert stream.ended() == "UNAVAILABLE"

        said = Event.objects.filter(kind="RevisionScaled").values_list("message", flat=True)
        assert list(said.order_by("seq")) == ["Scaled from 1 to 0: no request came for 10 s"]
        platform.until_so(lambda: platform.view().phase == "Ready" and not platform.seen(NAME).replicas)
        assert platform.view().reason == f"{NAME} is asleep, since no request came: its next request wakes it"
        rested = timezone.now() + timedelta(seconds=3)  # hours are shown with three digits
        platform.until_so(lambda: timezone.now() > rested)
        with ThreadPoolExecutor(2) as pool:
            again = OpenStream(channel, bearer)
            again.send()
            answers, posted = pool.submit(again.answers, 1), pool.submit(post)
            platform.until_so(lambda: posted.done() and answers.done())
            assert (posted.result(), answers.result()) == (200, [""])
        platform.until_so(lambda: platform.view().reason == f"{NAME} serves all traffic with 1 replica")
    shown = platform.view().revisions[0]
    assert (shown.asleep_since, shown.replicas_ready) == (None, 1)
    assert shown.asleep_hours > 0
    assert said.latest("seq") == "Scaled from 0 to 1: a request woke it"
    sleep = Revision.objects.get().load["sleep"]
    assert sleep["slept_at"] - 1 <= sleep["woken_at"] <= time.time()  # of whole seconds


def test_requests_in_flight_are_answered_while_their_service_goes_to_sleep(
    cluster: Harness, waker: WakerProcess
) -> None:
    with serving(cluster, REAL_IMAGE, model_config=SLOW) as sleeper, ThreadPoolExecutor(2) as pool:
        stream = OpenStream(sleeper.channel, token())
        stream.send()
        stream.send()
        posted = pool.submit(sleeper.infer)
        until(lambda: sleeper.in_flight() == 3, "all reached the replica", WITHIN_S)
        sleeper.sleep(time.time())
        assert posted.result().status_code == 200
        assert stream.answers(2) == ["", ""]
        assert stream.ended() == "UNAVAILABLE"
        again = OpenStream(sleeper.channel, token())
        again.send()
        assert again.answers(1) == [""]
