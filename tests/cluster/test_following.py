"""What happens on a cluster turns the reconciler to its service at once: no poll is made here at all."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster
from clusters.services.watch import Follower
from deployments.models import InferenceService
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outside
from integrations.clusters.kubernetes.access import Access, Credentials, KubeconfigFile
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.cluster._support.removal import remove
from tests.cluster.plane import ControlPlane
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.cluster
OPTIONS = Options(GatewayReference("gateway", "gateways"), "fairlead/serving-runtime:test", "models", "/artifacts")
_WITHIN_S = 120.0


class Followed:
    """A service on Kubernetes whose reconciler has a turn only when it is woken."""

    def __init__(self, platform: Platform, plane: ControlPlane) -> None:
        self.platform = platform
        self.plane = plane
        self.api = Api(plane.kubeconfig)
        self.woken: list[float] = []
        self.reached: dict[str, Access] = {}
        self.follower = Follower(self.reach, timezone.now, time.monotonic, self.touch)

    def reach(self, cluster: Cluster) -> Access:
        return self.reached.get(cluster.name, KubeconfigFile(self.plane.kubeconfig))

    def add_elsewhere(self) -> Cluster:
        """Add a cluster with a service that is nobody's but the database's, and which cannot be reached."""
        self.reached["elsewhere"] = Credentials("https://127.0.0.1:1", token="none")  # nobody is there
        cluster = Cluster.objects.create(name="elsewhere", kind="kubernetes", created_at=timezone.now())
        other = InferenceService.objects.get()
        other.pk, other.cluster, other.name = None, cluster, "other"
        other.save()
        return cluster

    def touch(self, cluster_id: int, services: list[tuple[str, str]]) -> Iterable[int]:
        """Give each of the services that there are a turn."""
        for namespace, name in services:
            rows = InferenceService.objects.filter(cluster=cluster_id, namespace=namespace, name=name)
            for service_id in rows.values_list("pk", flat=True):
                self.wake(service_id)
                yield 1

    def wake(self, service_id: int) -> None:
        self.woken.append(time.monotonic())
        self.platform.clock.go_on(1.0)
        reconciler.tick(service_id, Outside(KubernetesDriver(self.api, OPTIONS), lambda _seen: [], self.platform.clock))

    def until(self, look: Callable[[], object]) -> None:
        deadline = time.monotonic() + _WITHIN_S
        while not look():
            assert time.monotonic() < deadline, f"not within {_WITHIN_S:g} s; woken {len(self.woken)} times"
            self.follower.turn(0.2)

    def rest(self) -> None:
        """Let what is under way come to its end: nothing wakes for a while."""
        self.until(lambda: self.woken and time.monotonic() - self.woken[-1] > 2.0)

    def services(self) -> list[str]:
        found = self.api.list(resource_types.SERVICE, "default", {"fairlead/service": "digits"})
        return [each["metadata"]["name"] for each in found]


@pytest.fixture
def followed(db: None, plane: ControlPlane) -> Iterator[Followed]:
    platform = Platform()
    platform.version(1)
    service = platform.apply(policy=None)
    Cluster.objects.filter(pk=service.cluster_id).update(kind="kubernetes")
    it = Followed(platform, plane)
    it.wake(service.pk)
    it.follower.refresh()
    it.rest()
    yield it
    it.follower.close()
    driver = KubernetesDriver(it.api, OPTIONS)
    remove(driver, "digits", 1000)
    it.api.close()


def test_what_was_deleted_by_hand_comes_back_without_a_poll(followed: Followed) -> None:
    with followed.plane.client() as client:
        client.delete(resource_types.SERVICE.path("default", "digits-00001")).raise_for_status()
    followed.until(lambda: "digits-00001" in followed.services())
    followed.until(lambda: followed.platform.events()[-1] == "DriftHealed")


def test_a_storm_of_changes_wakes_at_most_once_a_second(followed: Followed) -> None:
    began, before = time.monotonic(), len(followed.woken)
    with followed.plane.client() as client:
        for number in range(40):
            change = {"metadata": {"labels": {"by-hand": str(number)}}}
            headers = {"content-type": "application/merge-patch+json"}
            client.patch(
                resource_types.SERVICE.path("default", "digits-00001"), json=change, headers=headers
            ).raise_for_status()
    followed.until(lambda: len(followed.woken) > before)
    followed.rest()
    assert len(followed.woken) - before <= time.monotonic() - began + 1


def test_how_the_watches_do_is_recorded(followed: Followed) -> None:
    def recorded() -> dict[str, object]:
        followed.follower.refresh()
        return Cluster.objects.get().watch

    followed.until(lambda: recorded()["streaming"] == recorded()["total"])
    assert recorded()["problems"] == []


def test_a_cluster_is_added_changed_and_removed_while_others_are_followed(followed: Followed) -> None:
    def watch() -> dict[str, Any]:
        followed.follower.refresh()
        return dict(Cluster.objects.get(name="elsewhere").watch)

    elsewhere = followed.add_elsewhere()
    followed.until(lambda: watch()["problems"])
    assert watch()["streaming"] == 0
    del followed.reached["elsewhere"]
    followed.until(lambda: watch()["streaming"] == watch()["total"] > 0)
    assert watch()["problems"] == []
    elsewhere.services.all().delete()
    elsewhere.delete()
    followed.follower.refresh()
    with followed.plane.client() as client:
        client.delete(resource_types.SERVICE.path("default", "digits-00001")).raise_for_status()
    followed.until(lambda: "digits-00001" in followed.services())


def test_a_cluster_without_services_is_followed_no_more(followed: Followed) -> None:
    InferenceService.objects.all().delete()
    followed.follower.refresh()
    followed.woken.clear()
    with followed.plane.client() as client:
        client.delete(resource_types.SERVICE.path("default", "digits-00001")).raise_for_status()
    followed.follower.turn(0.0)
    assert followed.woken == []
