"""Cluster autoscaler and rollout together: the real controller of HorizontalPodAutoscalers, whose metrics follow the
weights that the gateway confirmed, and the reconciler with its driver.

What goes wrong elsewhere: a rollout sets back what the autoscaler raised, and pods flap; stable is scaled down while
the canary has its requests, and an abort finds too few; the new revision gets all requests with its least replicas.
"""

import itertools
import json
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from deployments.models import InferenceService
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outside
from deployments.services import rollout_abort, rollout_promote
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import REVISION
from integrations.clusters.kubernetes.manifests.scaling.autoscaler import METRICS
from registry.models import ModelVersion
from tests.cluster._support.metrics.custom_metrics import custom_metrics
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import V2_SERVER, model

pytestmark = pytest.mark.cluster
_WITHIN_S = 600.0
_TARGET = 10


@dataclass
class Clients:
    """So many requests in flight at any moment, given to revisions by weight and to their ready pods alike.

    Attributes:
        looks: how often an autoscaler asked for the pods of each revision.
    """

    in_flight: float = 0.0
    weights: dict[str, int] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)

    def measure(self, metric: str, pods: Sequence[dict[str, Any]]) -> dict[str, float]:
        assert metric == METRICS["concurrency"]
        ready = [pod["metadata"] for pod in pods if _is_ready(pod)]
        self.looks.update({each["labels"][REVISION] for each in ready})
        return {
            each["name"]: self.in_flight * self.weights.get(each["labels"][REVISION], 0) / 100 / len(ready)
            for each in ready
        }


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


class Numbers(threading.Thread):
    """Every number of replicas that any Deployment was ever given, in order, by a watch."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(name="numbers")
        self._client = plane.client()
        self.seen: list[tuple[str, int]] = []

    def run(self) -> None:
        try:
            with self._client.stream(
                "GET", resource_types.DEPLOYMENT.path("default"), params={"watch": "1"}, timeout=None
            ) as told:
                for line in told.iter_lines():
                    found = json.loads(line)["object"]
                    self.seen.append((found["metadata"]["name"], found["spec"]["replicas"]))
        except (httpx.HTTPError, OSError, ValueError):
            return  # closed

    def of(self, revision: str, since: int = 0) -> list[int]:
        """Return a revision's numbers, each once until it changes."""
        return [number for number, _ in itertools.groupby(n for name, n in self.seen[since:] if name == revision)]


@dataclass
class Autoscaled(Platform):
    """The platform of the reconciler's tests on a cluster with autoscalers.

    Attributes:
        stands_at: how many replicas all requests need; no weight is ever seen without its part of them.
    """

    harness: Harness = field(kw_only=True)
    driver: KubernetesDriver = field(kw_only=True)
    clients: Clients = field(kw_only=True)
    numbers: Numbers = field(kw_only=True)
    stands_at: int = 0

    def version(self, number: int, **more: Any) -> ModelVersion:
        made = super().version(number, **more)
        stored = self.harness.store(model(number))
        made.digest, made.artifact_uri = stored.digest, stored.uri
        made.save()
        return made

    def tick(self, *, seconds: float = 1.0) -> None:
        self.clock.go_on(seconds)
        # Without counters of its own: what the reconciler knows of the load it knows from the autoscaler.
        reconciler.tick(InferenceService.objects.get().pk, Outside(self.driver, lambda _seen: (), self.clock))
        seen = self.driver.observe("default", "digits")
        self.clients.weights = {each.name: each.weight_percent for each in seen.revisions}
        for each in seen.revisions:
            if each.name != "digits-00001" and self.stands_at:
                needed = math.ceil(self.stands_at * each.weight_percent / 100)
                assert each.ready_replicas >= needed, f"{each.weight_percent} % for {each.ready_replicas} replicas"

    def until_so(self, look: Callable[[], object]) -> None:
        deadline = time.monotonic() + _WITHIN_S
        while not look():
            assert time.monotonic() < deadline, f"not within {_WITHIN_S:g} s: {self.view()} {self.numbers.seen[-20:]}"
            self.tick()

    def replicas(self, revision: str) -> int:
        """Return how many replicas a revision's autoscaler has come to, all of them ready, and 0 until then."""
        seen = self.driver.observe("default", "digits").revision(revision)
        if seen is None or seen.scaling is None or seen.scaling.problem:
            return 0
        return seen.scaling.replicas if seen.ready_replicas == seen.scaling.replicas else 0


@pytest.fixture
def platform(db: None, plane: ControlPlane, tmp_path: Any) -> Iterator[Autoscaled]:
    clients, numbers = Clients(), Numbers(plane)
    with (
        harness(plane, tmp_path, runtime=[sys.executable, str(V2_SERVER)]) as running,
        custom_metrics(plane, [METRICS["concurrency"]], clients.measure),
    ):
        api = Api(plane.kubeconfig)
        numbers.start()
        driver = KubernetesDriver(api, replace(running.options, custom_metrics=True))
        yield Autoscaled(harness=running, driver=driver, clients=clients, numbers=numbers)
        api.close()


def test_autoscaler_and_rollout_never_work_against_each_other(platform: Autoscaled) -> None:
    for number in (1, 2, 3):
        platform.version(number)
    platform.policy(
        name="two-steps", steps=[{"weight": 25, "pause": True}, {"weight": 50, "pause": True}], scaleDownDelay="1s"
    )
    scaling = {"maxReplicas": 6, "scaleMetric": "concurrency", "scaleTarget": _TARGET}
    platform.apply(policy="two-steps", **scaling)
    platform.until_so(lambda: platform.view().phase == "Ready")

    platform.clients.in_flight = 4 * _TARGET
    platform.until_so(lambda: platform.replicas("digits-00001") == 4)

    # The canary's capacity is a part of what the autoscaler made of stable, and stable keeps it.
    platform.stands_at, since = 4, len(platform.numbers.seen)
    platform.start("2")
    platform.until_so(lambda: platform.rollout().phase == "Paused")
    _settle(platform)
    rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.until_so(lambda: platform.rollout().phase == "Paused")
    _settle(platform)
    assert platform.numbers.of("digits-00001", since) in ([], [4]), "stable is not touched"
    rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.until_so(lambda: platform.rollout().phase == "Healthy")
    platform.until_so(lambda: platform.replicas("digits-00002") == 4)
    assert platform.numbers.of("digits-00001", since) in ([], [4])

    # What the rollout needed falls away once the autoscaler has seen the load for as long as its window.
    _pass_window(platform)
    assert _least(platform, "digits-00002") == 1
    _settle(platform)
    rising = platform.numbers.of("digits-00002")
    assert rising == sorted(rising), "it only ever rose"
    assert rising[-1] == 4

    # An abort finds all of stable.
    since = len(platform.numbers.seen)
    platform.start("3")
    platform.until_so(lambda: platform.rollout().phase == "Paused")
    rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.until_so(lambda: platform.rollout().phase == "Paused")
    _settle(platform)
    rollout_abort(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.until_so(lambda: platform.clients.weights == {"digits-00002": 100})
    _settle(platform)
    assert platform.numbers.of("digits-00002", since) in ([], [4])

    # Without a rollout the load alone decides, downwards too.
    platform.clients.in_flight, platform.stands_at = _TARGET / 2, 0
    _pass_window(platform)
    platform.until_so(lambda: platform.replicas("digits-00002") == 1)


def _settle(platform: Autoscaled) -> None:
    """Go on until the autoscalers have looked so often that nothing of before is remembered."""
    before = Counter(platform.clients.looks)
    running = [name for name, weight in platform.clients.weights.items() if weight]
    platform.until_so(lambda: all(platform.clients.looks[name] >= before[name] + 5 for name in running))


def _pass_window(platform: Autoscaled) -> None:
    """Let the reconciler's window for scaling down pass, in steps that are no absence."""
    for _ in range(8):
        platform.tick(seconds=50)


def _least(platform: Autoscaled, revision: str) -> int:
    with platform.harness.plane.client() as client:
        found = client.get(resource_types.AUTOSCALER.path("default", revision)).raise_for_status().json()
    return int(found["spec"]["minReplicas"])
