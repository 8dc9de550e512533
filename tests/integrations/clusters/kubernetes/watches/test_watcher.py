"""Watches on a real API server: what is told, and what a server that goes away or forgets does to them."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import MANAGED
from integrations.clusters.kubernetes.options import GatewayReference, Options
from integrations.clusters.kubernetes.watches import Watcher
from integrations.clusters.kubernetes.watches.state import Watch, listed
from integrations.clusters.kubernetes.watches.watcher import WATCHED, Following
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster
OPTIONS = Options(GatewayReference("gateway", "gateways"), "fairlead/serving-runtime:test", "models", "/artifacts")
_WITHIN_S = 120.0
_numbers = itertools.count(1)


@dataclass
class Place:
    """A service of a namespace of its own, and what watches told of it."""

    plane: ControlPlane
    api: Api
    namespace: str
    told: set[tuple[str, str]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, services: set[tuple[str, str]]) -> None:
        with self.lock:
            self.told |= services

    def forget(self) -> None:
        with self.lock:
            self.told.clear()

    def apply(self, service: str = "digits", generation: int = 1) -> None:
        artifact = ("file:///artifacts/1", "sha256:1")
        revision = DesiredRevision(f"{service}-00001", service, "1", *artifact, replicas=1, weight_percent=100)
        KubernetesDriver(self.api, OPTIONS).apply(Desired(self.namespace, service, generation, (revision,)))

    def label(self, service: str = "digits") -> None:
        """Change something of a service as a person does."""
        path = resource_types.DISRUPTION_BUDGET.path(self.namespace, f"{service}-00001")
        headers = {"content-type": "application/merge-patch+json"}
        change = {"metadata": {"labels": {"by-hand": str(time.monotonic_ns())}}}
        with self.plane.client() as client:
            client.patch(path, json=change, headers=headers).raise_for_status()


@pytest.fixture
def place(plane: ControlPlane) -> Iterator[Place]:
    namespace = f"watched-{next(_numbers)}"
    with plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
    api = Api(plane.kubeconfig)
    yield Place(plane, api, namespace)
    api.close()


@pytest.fixture
def watcher(place: Place) -> Iterator[Watcher]:
    """Give a watcher that streams the place's namespace, in which there is the service digits."""
    place.apply()
    watcher = Watcher(place.api, place.tell)
    watcher.follow([place.namespace])
    until(lambda: is_streaming(watcher))
    until(lambda: (place.namespace, "digits") in place.told)
    settle(place)
    yield watcher
    watcher.close()


def until(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not look():
        assert time.monotonic() < deadline, f"not within {_WITHIN_S:g} s"
        time.sleep(0.05)


def is_streaming(watcher: Watcher) -> bool:
    standing = watcher.standing()
    return standing.streaming == standing.total == len(WATCHED)


def settle(place: Place) -> None:
    """Wait until the controllers have made what follows from the service, so that no more of it is told."""

    def rests() -> bool:
        place.forget()
        deployment = place.api.get(resource_types.DEPLOYMENT, place.namespace, "digits-00001")
        assert deployment is not None
        status = deployment.get("status", {})
        return bool(status.get("observedGeneration") == deployment["metadata"]["generation"] and status.get("replicas"))

    until(rests)


def test_a_change_of_one_service_is_told_of_that_service(place: Place, watcher: Watcher) -> None:
    place.label()
    until(lambda: place.told == {(place.namespace, "digits")})


def test_a_deleted_object_is_told(place: Place, watcher: Watcher) -> None:
    with place.plane.client() as client:
        client.delete(resource_types.SERVICE.path(place.namespace, "digits-00001")).raise_for_status()
    until(lambda: place.told == {(place.namespace, "digits")})


def test_a_namespace_that_is_followed_no_more_is_told_of_no_more(place: Place, watcher: Watcher) -> None:
    watcher.follow([])
    assert watcher.standing().total == 0
    assert not [each for each in threading.enumerate() if each.name.startswith(f"watch-{place.namespace}-")]


def test_what_changed_around_a_restart_of_the_api_server_is_told(place: Place, watcher: Watcher) -> None:
    place.plane.stop("kube-apiserver")
    until(lambda: watcher.standing().streaming == 0)
    until(lambda: any("does not answer" in each for each in watcher.standing().problems))
    place.plane.start_apiserver()
    place.forget()
    place.label()
    until(lambda: (place.namespace, "digits") in place.told)
    until(lambda: is_streaming(watcher) and not watcher.standing().problems)
    place.forget()
    place.label()
    until(lambda: (place.namespace, "digits") in place.told)


def test_a_watch_whose_history_is_gone_finds_by_a_list_what_it_missed(place: Place) -> None:
    place.apply()
    kind = resource_types.DISRUPTION_BUDGET
    listing = place.api.read(kind, place.namespace, MANAGED)
    known, _ = listed(Watch(), listing.items, "1", time.monotonic())  # the server has forgotten its first change
    place.label()
    following = Following(place.api, kind, place.namespace, place.tell, known)
    following.start()
    until(lambda: following.is_streaming and following.watch.resource_version != "1")
    until(lambda: place.told == {(place.namespace, "digits")})
    following.stop()
    following.join(_WITHIN_S)
    assert not following.is_alive()


def test_a_role_that_may_not_watch_is_told_and_nothing_ends(place: Place) -> None:
    api = Api(place.plane.user("nobody"))
    watcher = Watcher(api, place.tell)
    watcher.follow([place.namespace])
    until(lambda: len(watcher.standing().problems) == len(WATCHED))
    assert all("forbidden" in each for each in watcher.standing().problems)
    watcher.close()
    api.close()
