"""Watches on a real API server: what is told, and what a server that goes away or forgets does to them."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.access import KubeconfigFile
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import ledger_name
from integrations.clusters.kubernetes.options import GatewayReference, Options
from integrations.clusters.kubernetes.watches import Cache, Watcher
from integrations.clusters.kubernetes.watches.cached_api import CachedApi
from integrations.clusters.kubernetes.watches.watcher import OPTIONAL, WATCHED
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
    cache: Cache = field(default_factory=Cache)
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

    def bind(self, user: str) -> None:
        """Give a user the rights of the driver's role in the namespace, and in no other."""
        roles = yaml.safe_load_all(Path(rbac.__file__).with_name("role.yaml").read_text())
        rules = next(each["rules"] for each in roles if each["metadata"]["name"] == rbac.IN_NAMESPACES)
        group = "rbac.authorization.k8s.io"
        path, named = f"/apis/{group}/v1/namespaces/{self.namespace}", {"metadata": {"name": user}}
        subjects = [{"kind": "User", "apiGroup": group, "name": user}]
        reference = {"apiGroup": group, "kind": "Role", "name": user}
        with self.plane.client() as client:
            client.post(f"{path}/roles", json=named | {"rules": rules}).raise_for_status()
            binding = named | {"roleRef": reference, "subjects": subjects}
            client.post(f"{path}/rolebindings", json=binding).raise_for_status()

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
    watcher = Watcher(KubeconfigFile(place.plane.kubeconfig), place.cache, place.tell)
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
    return standing.streaming == standing.total >= len(WATCHED) - len(OPTIONAL) + 1


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
    until(lambda: watcher.standing().total == 0)


def test_what_changed_around_a_restart_of_the_api_server_is_told(place: Place, watcher: Watcher) -> None:
    place.plane.stop("kube-apiserver")
    until(lambda: watcher.standing().streaming == 0)
    until(lambda: any("does not answer" in each for each in watcher.standing().problems))
    kind = resource_types.DEPLOYMENT
    assert place.cache.covers(kind, place.namespace), "for some seconds it is relied on"
    until(lambda: not place.cache.covers(kind, place.namespace))
    place.plane.start_apiserver()
    place.forget()
    place.label()
    until(lambda: (place.namespace, "digits") in place.told)
    until(lambda: is_streaming(watcher) and not watcher.standing().problems)
    until(lambda: place.cache.covers(kind, place.namespace))
    place.forget()
    place.label()
    until(lambda: (place.namespace, "digits") in place.told)


def test_a_role_of_one_namespace_has_watches_of_its_own(place: Place) -> None:
    place.apply()
    kinds = {kind for kind in WATCHED if kind not in OPTIONAL}
    place.bind("of-one-namespace")
    cache = Cache()
    watcher = Watcher(KubeconfigFile(place.plane.user("of-one-namespace")), cache, place.tell)
    watcher.follow([place.namespace])
    until(lambda: all(cache.covers(kind, place.namespace) for kind in (*kinds, resource_types.CONFIG_MAP)))
    place.forget()
    place.label()
    until(lambda: (place.namespace, "digits") in place.told)
    watcher.close()


def test_a_role_that_may_not_watch_is_told_and_nothing_ends(place: Place) -> None:
    watcher = Watcher(KubeconfigFile(place.plane.user("nobody")), Cache(), place.tell)
    watcher.follow([place.namespace])
    until(lambda: len(watcher.standing().problems) == len(WATCHED) - len(OPTIONAL))
    assert all("forbidden" in each for each in watcher.standing().problems)
    watcher.close()


class Counting(CachedApi):
    """Counts the requests that it sends."""

    sent = 0

    def _send(self, asked: Any) -> Any:
        self.sent += 1
        return super()._send(asked)


def test_a_driver_with_a_cache_asks_nothing_where_nothing_changed_and_survives_the_loss_of_the_entry(
    place: Place,
) -> None:
    access, cache = KubeconfigFile(place.plane.kubeconfig), Cache()
    api = Counting(access, cache)
    driver, watcher = KubernetesDriver(api, OPTIONS), Watcher(access, cache, place.tell)
    watcher.follow([place.namespace])
    until(lambda: driver.mark(place.namespace, "digits") is not None)
    artifact = ("file:///artifacts/1", "sha256:1")
    revision = DesiredRevision("digits-00001", "digits", "1", *artifact, replicas=0, weight_percent=100)

    def sent() -> int:
        before = api.sent
        assert driver.apply(Desired(place.namespace, "digits", 1, (revision,))) == []
        assert driver.observe(place.namespace, "digits").revisions
        return api.sent - before

    def written() -> dict[tuple[str, str], str]:
        kinds = (resource_types.DEPLOYMENT, *resource_types.ROUTES)
        found = [(kind, each["metadata"]) for kind in kinds for each in place.api.list(kind, place.namespace, {})]
        return {(kind.kind, each["name"]): each["uid"] for kind, each in found}

    assert sent() > 0
    until(lambda: sent() == 0)  # controllers have written what follows
    assert sum(sent() for _ in range(10)) == 0
    before, entry = written(), resource_types.CONFIG_MAP.path(place.namespace, ledger_name("digits"))
    assert {kind for kind, _ in before} == {"Deployment", "HTTPRoute", "GRPCRoute"}
    with place.plane.client() as client:
        was = client.get(entry).raise_for_status().json()
        client.delete(entry).raise_for_status()
        until(lambda: not driver.observe(place.namespace, "digits").revisions)
        assert sent() > 0
        now = client.get(entry).raise_for_status().json()
    assert (now["data"], now["metadata"]["uid"] != was["metadata"]["uid"]) == (was["data"], True)
    until(lambda: sent() == 0)
    assert written() == before, "nothing else was deleted, or made again"
    watcher.close()
    driver.close()
