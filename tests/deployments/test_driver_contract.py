"""What the reconciler relies on, tested on the fake it is tested with, on the real local driver and its agent, and on
the Kubernetes driver with a real control plane."""

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import httpx
import pytest

from common.errors import NotFound
from integrations.clusters.base import (
    ClusterDriver,
    Desired,
    DesiredRevision,
    Exchange,
    FailureReason,
    Observed,
    Tap,
    WorkloadIdentity,
)
from integrations.clusters.base.failures import MAX_LOG_LINES
from integrations.clusters.local.pid_files import read_record
from serving_runtime.telemetry.tap.sinks import FolderSink
from tests.cluster.harness import Harness, Repeating, harness
from tests.cluster.plane import ControlPlane
from tests.deployments._support.fakes import FakeCluster
from tests.integrations._support.runtimes import V2_SERVER, Cluster, until

GATEWAYS = ["local", pytest.param("kubernetes", marks=pytest.mark.cluster)]
"""Where there is one, so that a client can ask."""
FAILS = {"MODEL_START": "fail", "MODEL_TOKEN": "s3cr3t-value"}
_names = (f"service-{number}" for number in itertools.count(1))


@dataclass
class Anywhere:
    """A driver and what only the place itself can do; every test has a service of its own."""

    driver: ClusterDriver
    settle: Callable[[], None]
    kill: Callable[[str], None]
    paused: Callable[[], AbstractContextManager[None]]
    break_start: Callable[[str], dict[str, str]]
    fail_start: Callable[[str], dict[str, str]]
    tell: Callable[[str, str, str], None]
    artifact: tuple[str, str]
    service: str = field(default_factory=lambda: next(_names))
    patience_s: float = 60.0
    gateway_url: str = ""

    def revision(
        self, number: int, weight: int, *, replicas: int = 1, env: dict[str, str] | None = None
    ) -> DesiredRevision:
        name = f"{self.service}-{number:05}"
        return DesiredRevision(name, self.service, str(number), *self.artifact, replicas, weight, env=env or {})

    def apply(self, generation: int, *revisions: DesiredRevision) -> None:
        self.driver.apply(Desired("default", self.service, generation, revisions))

    def record(self, revision: str, request_id: str) -> None:
        """Let a tap of the revision have recorded a request."""
        self.tell(self.service, revision, request_id)

    def until(self, look: Callable[[Observed], bool]) -> Observed:
        def found() -> Observed | None:
            self.settle()
            seen = self.driver.observe("default", self.service)
            return seen if look(seen) else None

        seen = until(
            found, f"what was waited for; the last was {self.driver.observe('default', self.service)}", self.patience_s
        )
        assert seen is not None
        return seen

    def weights(self, generation: int, *weights: int) -> Observed:
        return self.until(
            lambda seen: (
                seen.generation == generation and tuple(each.weight_percent for each in seen.revisions) == weights
            )
        )


@pytest.fixture(scope="module")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def kubernetes(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("kubernetes"), runtime=[sys.executable, str(V2_SERVER)]) as running:
        yield running


@pytest.fixture(params=["fake", *GATEWAYS])
def anywhere(request: pytest.FixtureRequest) -> Anywhere:
    if request.param == "fake":
        fake = FakeCluster()

        def breaks(revision: str) -> dict[str, str]:
            fake.broken[revision] = "cannot start"
            return {}

        def tells(service: str, revision: str, request_id: str) -> None:
            fake.recorded.setdefault(("default", service), []).append(Exchange(request_id, revision, "1", 0.0, {}, {}))

        return Anywhere(
            fake, fake.settle, fake.crash, nullcontext, breaks, breaks, tells, ("file:///nowhere", "sha256:0")
        )
    if request.param == "kubernetes":
        return _on_kubernetes(request.getfixturevalue("kubernetes"))
    cluster: Cluster = request.getfixturevalue("real_cluster")
    stored = cluster.artifact(b"a model")

    def kill(revision: str) -> None:
        record = read_record(cluster.layout.run / f"default.{revision}-0.json")
        assert record is not None
        assert record.pid is not None
        os.kill(record.pid, signal.SIGKILL)

    def tell(service: str, revision: str, request_id: str) -> None:
        sink = FolderSink(cluster.layout.payloads_of("default", service) / revision / "0", max_bytes=1 << 20)
        common = {"requestid": request_id, "time": "2026-01-01T00:00:00+00:00", "modelversion": "1", "data": {}}
        sink.write([{**common, "id": f"{request_id}:{number}"} for number in (0, 1)])
        sink.flush()
        sink.close()

    return Anywhere(
        cluster.driver,
        lambda: None,
        kill,
        cluster.paused,
        lambda _: {"MODEL_START": "never-ready"},
        lambda _: FAILS,
        tell,
        (stored.uri, stored.digest),
        gateway_url=cluster.url,
    )


def _on_kubernetes(harness: Harness) -> Anywhere:
    stored = harness.store(b"a model")
    driver = Repeating(harness.driver)

    def tell(service: str, revision: str, request_id: str) -> None:
        seen = harness.driver.observe("default", service).revision(revision)
        assert seen is not None
        common = {"requestid": request_id, "time": "2026-01-01T00:00:00+00:00", "modelversion": "1", "data": {}}
        events = [{**common, "id": f"{request_id}:{number}"} for number in (0, 1)]
        harness.driver.keep(WorkloadIdentity("default", service, seen.replicas[0].name), json.dumps(events).encode())

    return Anywhere(
        driver,
        driver.again,
        lambda revision: harness.kubelet.pod(revision).crash("runtime"),
        harness.kubelet.paused,
        lambda _: {"MODEL_START": "never-ready"},
        lambda _: FAILS,
        tell,
        (stored.uri, stored.digest),
        patience_s=300.0,
        gateway_url=harness.gateway.url,
    )


def test_an_unknown_service_has_generation_0_and_nothing_runs(anywhere: Anywhere) -> None:
    seen = anywhere.driver.observe("default", anywhere.service)
    assert (seen.generation, seen.revisions) == (0, ())


def test_what_was_wished_is_confirmed_with_its_generation(anywhere: Anywhere) -> None:
    anywhere.apply(3, anywhere.revision(1, 90), anywhere.revision(2, 10))
    seen = anywhere.weights(3, 90, 10)
    assert [revision.ready_replicas for revision in seen.revisions] == [1, 1]


@pytest.mark.parametrize("anywhere", GATEWAYS, indirect=True)
def test_an_http_request_is_given_up_after_the_services_timeout(anywhere: Anywhere) -> None:
    slow = anywhere.revision(1, 100, env={"MODEL_DO": "sleep=20"})
    anywhere.driver.apply(Desired("default", anywhere.service, 1, (slow,), request_timeout_s=1))
    anywhere.weights(1, 100)
    url = f"{anywhere.gateway_url}/serving/default/{anywhere.service}/v2/models/{anywhere.service}/infer"

    def answered() -> int:
        status = httpx.post(url, json={}, timeout=60, trust_env=False).status_code
        return 0 if status == 503 else status  # the gateway's threads take up a route one after the other

    assert until(answered, "an answer") == 504


def test_without_weights_replicas_start_and_nobody_gets_requests(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 0))
    seen = anywhere.until(lambda seen: bool(seen.revisions) and seen.revisions[0].ready_replicas == 1)
    assert [revision.weight_percent for revision in seen.revisions] == [0]


def test_copies_are_confirmed_apart_from_weights_and_only_of_what_is_ready(anywhere: Anywhere) -> None:
    env = anywhere.break_start(f"{anywhere.service}-00003")
    shadows = [
        replace(anywhere.revision(2, 0), mirror_percent=20),
        replace(anywhere.revision(3, 0, env=env), mirror_percent=30),
    ]
    anywhere.apply(1, anywhere.revision(1, 100), *shadows)
    anywhere.until(
        lambda seen: (
            [(each.weight_percent, each.mirror_percent) for each in seen.revisions] == [(100, 0), (0, 20), (0, 0)]
        )
    )
    anywhere.apply(2, anywhere.revision(1, 100), anywhere.revision(2, 0))
    anywhere.until(
        lambda seen: [(each.weight_percent, each.mirror_percent) for each in seen.revisions] == [(100, 0), (0, 0)]
    )


def test_a_lower_generation_is_ignored_and_the_same_again_is_nothing(anywhere: Anywhere) -> None:
    newer = (anywhere.revision(1, 60), anywhere.revision(2, 40))
    anywhere.apply(5, *newer)
    anywhere.apply(4, anywhere.revision(1, 100))
    anywhere.weights(5, 60, 40)
    anywhere.apply(5, *newer)
    anywhere.weights(5, 60, 40)


def test_what_is_not_ready_gets_nothing_and_stays_visible(anywhere: Anywhere) -> None:
    env = anywhere.break_start(f"{anywhere.service}-00002")
    anywhere.apply(1, anywhere.revision(1, 90), anywhere.revision(2, 10, env=env))
    seen = anywhere.weights(1, 100, 0)
    assert seen.revisions[1].ready_replicas == 0


def test_a_failure_is_told_with_its_reason_its_exit_code_and_the_last_lines(anywhere: Anywhere) -> None:
    env = anywhere.fail_start(f"{anywhere.service}-00001")
    anywhere.apply(1, anywhere.revision(1, 100, env=env))

    def reports_events(seen: Observed) -> bool:
        failure = seen.revisions[0].last_failure if seen.revisions else None
        return failure is not None and bool(failure.log)

    seen = anywhere.until(reports_events)
    failure = seen.revisions[0].last_failure
    assert failure is not None
    assert failure.reason in (FailureReason.MODEL_LOAD_FAILED, FailureReason.RUNTIME_UNHEALTHY)
    assert failure.exit_code in (1, 3)
    assert failure.replica == seen.revisions[0].replicas[0].name
    assert "cannot" in failure.log[-1]
    assert "s3cr3t" not in repr(seen)


@pytest.mark.parametrize(
    "anywhere", ["fake", "local"], indirect=True
)  # pools take an Envoy Gateway: cluster/test_pools
def test_own_replicas_answer_beside_a_pool_that_cannot(anywhere: Anywhere) -> None:
    earned = replace(anywhere.revision(1, 100), pool="default/nowhere", own_replicas=1, own_since=1.0)
    anywhere.apply(1, earned)
    seen = anywhere.until(lambda seen: bool(seen.revisions) and seen.revisions[0].weight_percent == 100)
    assert (seen.revisions[0].pooled_as, seen.revisions[0].ready_replicas) == ("", 1)


def test_a_revision_that_is_left_out_goes(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 100), anywhere.revision(2, 0))
    anywhere.weights(1, 100, 0)
    anywhere.apply(2, anywhere.revision(1, 100))
    anywhere.weights(2, 100)


def test_a_restart_raises_its_replicas_counter(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 100))
    anywhere.weights(1, 100)
    anywhere.kill(f"{anywhere.service}-00001")
    seen = anywhere.until(lambda seen: seen.revisions[0].replicas[0].restarts == 1)
    assert len(seen.revisions[0].replicas) == 1


def test_the_service_is_named_whose_replica_ended_where_nobody_else_watches(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 100))
    anywhere.weights(1, 100)
    before = time.time()
    anywhere.kill(f"{anywhere.service}-00001")
    anywhere.until(lambda seen: seen.revisions[0].replicas[0].restarts == 1)
    named = anywhere.driver.touched(before - 1)
    assert named is None or ("default", anywhere.service) in named
    assert not anywhere.driver.touched(time.time() + 1)


def test_a_wish_from_before_the_deletion_is_ignored(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 100))
    anywhere.weights(1, 100)
    with anywhere.paused():  # else it may be forgotten before the old wish comes, which then is one for a new service
        anywhere.driver.delete("default", anywhere.service, 2)
        anywhere.apply(1, anywhere.revision(1, 100))
    anywhere.until(lambda seen: seen.generation == 0 and not seen.revisions)


def test_a_deleted_service_is_forgotten_and_may_come_back(anywhere: Anywhere) -> None:
    anywhere.driver.delete("default", anywhere.service, 1)
    anywhere.apply(7, anywhere.revision(1, 100))
    anywhere.weights(7, 100)
    anywhere.driver.delete("default", anywhere.service, 8)
    anywhere.until(lambda seen: seen.generation == 0 and not seen.revisions)
    anywhere.apply(1, anywhere.revision(1, 100))
    anywhere.weights(1, 100)


def test_a_replica_that_takes_requests_has_a_page_of_metrics(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 100))
    (revision,) = anywhere.weights(1, 100).revisions
    page = anywhere.driver.metrics_page("default", revision.replicas[0])
    assert "process_start_time_seconds" in page


def test_the_last_lines_are_those_of_the_services_own_replicas(anywhere: Anywhere) -> None:
    anywhere.apply(1, anywhere.revision(1, 100))
    (revision,) = anywhere.weights(1, 100).revisions
    assert len(anywhere.driver.log("default", anywhere.service, revision.replicas[0].name)) <= MAX_LOG_LINES
    with pytest.raises(NotFound, match="no replica"):
        anywhere.driver.log("default", anywhere.service, "../agent")


def test_what_was_recorded_comes_again_until_its_cursor_comes_back(anywhere: Anywhere) -> None:
    tapped = replace(anywhere.revision(1, 100), tap=Tap(50))
    anywhere.apply(1, tapped)
    anywhere.weights(1, 100)
    take = anywhere.driver.exchanges
    assert take("default", anywhere.service, "") == ([], "")
    assert take("default", "unknown", "") == ([], "")
    anywhere.record(tapped.name, "a")
    found, cursor = take("default", anywhere.service, "")
    assert [(each.request_id, each.revision) for each in found] == [("a", tapped.name)]
    assert take("default", anywhere.service, "") == (found, cursor)
    anywhere.record(tapped.name, "b")
    found, cursor = take("default", anywhere.service, cursor)
    assert [each.request_id for each in found] == ["b"]
    assert take("default", anywhere.service, cursor) == ([], cursor)


def test_a_tap_comes_and_goes_without_a_restart(anywhere: Anywhere) -> None:
    plain = anywhere.revision(1, 100)
    anywhere.apply(1, plain)
    before = anywhere.weights(1, 100).revisions[0].replicas
    anywhere.apply(2, replace(plain, tap=Tap(50)))
    assert anywhere.weights(2, 100).revisions[0].replicas == before
    anywhere.apply(3, plain)
    assert anywhere.weights(3, 100).revisions[0].replicas == before
