"""Model pools on Kubernetes behind Envoy Gateway: services without pods of their own, and the pool's that answer."""

import http.server
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from common.errors import Unavailable
from integrations.clusters.base import Desired, DesiredRevision, ObservedRevision
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply import ownership_configmap
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import CATALOG, SERVICE
from integrations.clusters.kubernetes.options import ModelSource
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.namespaces import make_namespace
from tests.cluster._support.removal import is_removed
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import Traffic, infer_json, model, until

pytestmark = pytest.mark.cluster
WITHIN_S = 180.0
POOL = "default/warm"
_OTHERS = {"name": "fairlead-service", "value": "default/digits"}


@dataclass
class Pools:
    """A pool `warm` of two replicas, and services in it, whose models are fetched from a web server."""

    harness: Harness
    driver: KubernetesDriver
    files: Path
    url: str
    generations: dict[tuple[str, str], int] = field(default_factory=dict)
    """By name and namespace, as `desired`."""
    desired: dict[tuple[str, str], Desired] = field(default_factory=dict)

    def revision(self, service: str, number: int, weight: int, content: bytes = b"") -> DesiredRevision:
        content = content or model(number)
        stored = self.harness.store(content)
        (self.files / f"{number}.onnx").write_bytes(content)
        origin = f"{self.url}/{number}.onnx"
        made = DesiredRevision(
            f"{service}-{number:05}", service, str(number), stored.uri, stored.digest, 1, weight, pool=POOL
        )
        return replace(made, artifact_origin=origin)

    def apply(
        self, service: str, *revisions: DesiredRevision, at: str = "default", shared_with: tuple[str, ...] = ()
    ) -> None:
        key = (service, at)
        self.generations[key] = self.generations.get(key, 0) + 1
        self.desired[key] = Desired(at, service, self.generations[key], revisions, shared_with=shared_with)
        self.again(service, at)

    def again(self, service: str, at: str = "default") -> None:
        with suppress(Unavailable):  # something was changed meanwhile, and is tried again
            self.driver.apply(self.desired[service, at])

    def until(
        self, service: str, *revisions: DesiredRevision, at: str = "default", shared_with: tuple[str, ...] = ()
    ) -> None:
        """Apply again and again, as the reconciler does, until the gateway does what is desired."""
        self.apply(service, *revisions, at=at, shared_with=shared_with)
        generation = self.generations[service, at]
        wanted = {each.name: each.weight_percent for each in revisions}

        def look() -> bool:
            self.again(service, at)
            seen = self.driver.observe(at, service)
            found = {each.name: each.weight_percent for each in seen.revisions if each.ready_replicas == 2}
            return found == wanted and seen.generation == generation and not seen.message

        until(look, f"the gateway gives {wanted}", WITHIN_S)

    def answer(self, service: str, at: str = "default", **headers: str) -> tuple[int, str, object]:
        """Return the status, the revision, and the outputs or what was said; `headers` are written with hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{self.harness.gateway.url}/serving/{at}/{service}/v2/models/{service}/infer"
        found = httpx.post(url, content=infer_json(), headers=sent, timeout=20, trust_env=False)
        said = found.json()["outputs"][0]["data"] if found.status_code == 200 else found.text
        return found.status_code, found.headers.get("fairlead-revision", ""), said

    def loaded(self, name: str) -> int:
        """Return by how many of the pool's replicas a model was loaded."""
        seen = self.driver.observe("default", "warm")
        pages = [self.driver.metrics_page("default", each) for one in seen.revisions for each in one.replicas]
        return sum(f'model="{name}"' in page for page in pages)

    def seen(self, service: str) -> ObservedRevision:
        """Apply once more, and return the service's newest revision; one before it may still end."""
        self.again(service)
        return self.driver.observe("default", service).revisions[-1]

    def until_own_answer(self, service: str, replicas: int) -> None:
        """Wait until its own replicas answer, so many; for 0 the pool, and nothing of them is left."""

        def look() -> bool:
            seen = self.seen(service)
            if replicas:
                return not seen.pooled_as and seen.ready_replicas == replicas and seen.weight_percent == 100
            kinds = (resource_types.DEPLOYMENT, resource_types.SERVICE, resource_types.NETWORK_POLICY)
            return bool(seen.pooled_as) and not any(self._list(kind, SERVICE, service) for kind in kinds)

        until(look, f"{replicas} own replicas answer", WITHIN_S)

    def pool_of(self, service: str) -> str:
        """Apply once more, and return the pool that the cluster knows for a service."""
        self.again(service)
        entry = ownership_configmap.read(self.harness.api, "default", service)
        return "" if entry is None else entry.pool

    def answered(self, service: str) -> dict[str, int]:
        """Return how many requests each own replica has answered."""
        pages = {each.name: self.driver.metrics_page("default", each) for each in self.seen(service).replicas}
        counted = {name: re.findall(r"^nv_inference_request_success{.*} (\d+)", pages[name], re.M) for name in pages}
        return {name: sum(map(int, its)) for name, its in counted.items()}

    def replicas(self) -> list[str]:
        """Return the names of the pool's replicas."""
        return [each.name for one in self.driver.observe("default", "warm").revisions for each in one.replicas]

    def is_complete(self) -> bool:
        """Return whether both replicas are ready."""
        return sum(each.ready_replicas for each in self.driver.observe("default", "warm").revisions) == 2

    def delete_pod(self, name: str) -> None:
        """End a replica as a drained node does."""
        with self.harness.plane.client() as client:
            client.delete(resource_types.POD.path("default", name)).raise_for_status()

    def left(self) -> list[str]:
        """Return what is still there of the pool and its services."""
        kinds = (
            *resource_types.PRUNED,
            *resource_types.OF_POOLS,
            resource_types.REFERENCE_GRANT,
            resource_types.POLICIES[1],
            resource_types.CONFIG_MAP,
        )
        found = [
            each for kind in kinds for name, at in self.generations for each in self._list(kind, SERVICE, name, at)
        ]
        return [*found, *self._list(resource_types.CONFIG_MAP, CATALOG, "warm")]

    def delete_all(self) -> None:
        """Delete the pool and its services, one after the other, and check that nothing of them is left."""
        for (service, at), generation in sorted(self.generations.items()):
            gone = partial(is_removed, self.driver, service, generation + 1, namespace=at)
            until(gone, f"{at}/{service} is gone", WITHIN_S)
        assert self.left() == []

    def namespace(self, name: str) -> None:
        with self.harness.plane.client() as client:
            make_namespace(client, name)

    def steal(self, name: str) -> None:
        """Make a route by hand, from a namespace to the pool, that asks for the model of another one's service."""
        model_of = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [_OTHERS]}}
        path = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/serving/default/digits"}
        rule = {
            "matches": [{"path": {"type": "PathPrefix", "value": f"/stolen-by-{name}"}}],
            "filters": [model_of, {"type": "URLRewrite", "urlRewrite": {"path": path}}],
            "backendRefs": [{"name": "warm-replicas", "namespace": "default", "port": 8000}],
        }
        gateway = self.harness.options.gateway
        spec = {"parentRefs": [{"name": gateway.name, "namespace": gateway.namespace}], "rules": [rule]}
        route = {"apiVersion": resource_types.GATEWAY_API, "kind": "HTTPRoute", "metadata": {"name": "stolen"}}
        with self.harness.plane.client() as client:
            made = client.post(resource_types.HTTP_ROUTE.path(name), json={**route, "spec": spec})
            made.raise_for_status()

    def stolen(self, name: str) -> int:
        """Return the status of the answer by that route."""
        url = f"{self.harness.gateway.url}/stolen-by-{name}/v2/models/digits/infer"
        return httpx.post(url, content=infer_json(), timeout=20, trust_env=False).status_code

    def grants(self) -> list[tuple[str, str]]:
        """Return which routes of which namespaces may lead to the pool."""
        found = self.harness.api.fetch_list(resource_types.REFERENCE_GRANT, "default", {SERVICE: "warm"})
        return [(one["kind"], one["namespace"]) for each in found for one in each["spec"]["from"]]

    def _list(self, kind: resource_types.Kind, label: str, value: str, at: str = "default") -> list[str]:
        found = self.harness.api.fetch_list(kind, at, {label: value})
        return [f"{each['kind']}/{each['metadata']['name']}" for each in found]


@pytest.fixture(scope="module")
def pools(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pools]:
    files, folder = (
        tmp_path_factory.mktemp("pools") / "web",
        Path(tempfile.mkdtemp(prefix="pools-")),
    )  # sockets want a short path
    files.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(files))
    with harness(plane, folder, gateway_of=EnvoyGateway) as running:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        options = replace(running.options, models_from=ModelSource.ORIGIN, control_plane_url="")
        driver = KubernetesDriver(running.api, options)
        try:
            yield Pools(running, driver, files, f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            driver.close()
            server.shutdown()
            thread.join()
            server.server_close()
    shutil.rmtree(folder)


def test_services_of_a_pool_are_answered_and_a_canary_loses_no_request(pools: Pools) -> None:
    pools.until("warm", DesiredRevision("warm-00001", "warm", "1", "", "", 2, 100, is_pool=True))
    pools.until("digits", pools.revision("digits", 2, 100))
    pools.until("other", pools.revision("other", 3, 100))
    until(lambda: pools.answer("digits")[0] == 200, "the gateway has the routes of one", WITHIN_S)
    until(lambda: pools.answer("other")[0] == 200, "the gateway has the routes of the other", WITHIN_S)
    assert pools.answer("warm")[0] == 404, "a pool itself has no model"
    assert pools.answer("digits") == (200, "digits-00002", [2, 4, 6, 8])
    for number in range(20):
        found = pools.answer("other", fairlead_service=f"default/x{number}", fairlead_model_version="9")
        assert found == (200, "other-00003", [3, 6, 9, 12]), "a client's own headers choose nothing"
    assert pools.loaded("default.other") == 1, "the replica that the hash says"

    broken = pools.revision("digits", 4, 30, content=b"no model")
    pools.apply("digits", pools.revision("digits", 2, 70), broken)

    def failure() -> str:
        pools.again("digits")
        found = pools.driver.observe("default", "digits").revision(broken.name)
        return "" if found is None or found.weight_percent else found.message

    until(lambda: "cannot be loaded" in failure() or "ONNX" in failure(), "a model that does not load", WITHIN_S)
    assert pools.answer("digits")[:2] == (200, "digits-00002"), "it gets no request"

    assert pools.loaded("default.digits") == 1, "the replica that the hash says, which has loaded it before"
    before, canary = pools.revision("digits", 2, 70), pools.revision("digits", 3, 30)
    with Traffic(pools.harness.gateway.url, headers={"fairlead-model-version": "9"}) as traffic:
        traffic.until_sent(40, WITHIN_S)
        pools.until("digits", replace(before, weight_percent=100), replace(canary, weight_percent=0))
        traffic.until_sent(20, WITHIN_S)
        pools.until("digits", before, canary)
        until(lambda: len({name for name, _ in traffic.outcomes[-40:]}) == 2, "both answer", WITHIN_S)
        pools.until("digits", replace(before, weight_percent=0), replace(canary, weight_percent=100))
        until(lambda: {name for name, _ in traffic.outcomes[-20:]} == {canary.name}, "one answers", WITHIN_S)
        pools.until("digits", replace(canary, weight_percent=100))
        traffic.until_sent(40, WITHIN_S)
        for gone in pools.replicas():
            pools.delete_pod(gone)
            until(lambda gone=gone: gone not in pools.replicas() and pools.is_complete(), "another is ready", WITHIN_S)
            traffic.until_sent(20, WITHIN_S)
    assert traffic.failures == [], f"of {len(traffic.outcomes)} requests"

    pools.delete_all()


def test_own_replicas_come_end_and_roll_out_and_no_request_is_lost(pools: Pools) -> None:
    pools.until("warm", DesiredRevision("warm-00001", "warm", "1", "", "", 2, 100, is_pool=True))
    pooled = pools.revision("digits", 2, 100)
    earned = replace(pooled, own_replicas=2, own_since=1.0)
    pools.until("digits", pooled)
    until(lambda: pools.answer("digits")[0] == 200, "the gateway has its routes", WITHIN_S)
    with Traffic(pools.harness.gateway.url, headers={"fairlead-model-version": "9"}) as traffic:
        traffic.until_sent(20, WITHIN_S)
        for lasting in (False, True):
            pools.apply("digits", earned)
            pools.until_own_answer("digits", 2)
            traffic.until_sent(40, WITHIN_S)
            until(lambda: all(pools.answered("digits").values()), "both have requests", WITHIN_S)
            if lasting:
                continue
            pools.apply("digits", pooled)
            pools.until_own_answer("digits", 0)
            traffic.until_sent(40, WITHIN_S)
        assert set(traffic.by_revision()) == {pooled.name}
        canary = replace(pools.revision("digits", 3, 30), own_replicas=2, own_since=2.0)
        pools.until("digits", earned, replace(canary, weight_percent=0))
        pools.until("digits", replace(earned, weight_percent=70), canary)
        until(lambda: len({name for name, _ in traffic.outcomes[-40:]}) == 2, "both answer", WITHIN_S)
        assert not any(each.pooled_as for each in pools.driver.observe("default", "digits").revisions)
        pools.until("digits", replace(canary, weight_percent=100))
        traffic.until_sent(40, WITHIN_S)
    assert traffic.failures == [], f"of {len(traffic.outcomes)} requests"

    before = pools.answered("digits")
    for _ in range(40):
        assert pools.answer("digits", fairlead_service="default/digits") == (200, canary.name, [3, 6, 9, 12])
    more = {name: number - before[name] for name, number in pools.answered("digits").items()}
    assert min(more.values()) >= 5, f"a header that the gateway hashes picks no replica: {more}"

    pools.delete_all()


def test_a_service_moves_out_of_its_pool_and_back_into_it_and_no_request_is_lost(pools: Pools) -> None:
    pools.until("warm", DesiredRevision("warm-00001", "warm", "1", "", "", 2, 100, is_pool=True))
    pooled = pools.revision("digits", 2, 100)
    pools.until("digits", pooled)
    until(lambda: pools.answer("digits")[0] == 200, "the gateway has its routes", WITHIN_S)
    outside = replace(pools.revision("digits", 3, 0), pool="", replicas=2)
    again = pools.revision("digits", 5, 0)
    with Traffic(pools.harness.gateway.url, headers={"fairlead-model-version": "9"}) as traffic:
        traffic.until_sent(20, WITHIN_S)
        for before, canary in ((pooled, outside), (outside, again)):
            shared = [replace(before, weight_percent=70), replace(canary, weight_percent=30)]
            pools.until("digits", replace(before, weight_percent=100), replace(canary, weight_percent=0))
            traffic.until_sent(20, WITHIN_S)
            pools.until("digits", *shared)
            until(lambda: len({name for name, _ in traffic.outcomes[-40:]}) == 2, "both answer", WITHIN_S)
            pools.until("digits", replace(before, weight_percent=0), replace(canary, weight_percent=100))
            pools.until("digits", replace(canary, weight_percent=100))
            traffic.until_sent(40, WITHIN_S)
            if canary is outside:
                until(lambda: not pools.pool_of("digits"), "it has left the pool", WITHIN_S)
        pools.until_own_answer("digits", 0)
        traffic.until_sent(40, WITHIN_S)
    assert traffic.failures == [], f"of {len(traffic.outcomes)} requests"
    assert set(traffic.by_revision()) == {pooled.name, outside.name, again.name}
    assert pools.answer("digits") == (200, again.name, [5, 10, 15, 20])
    pools.delete_all()


def test_a_shared_pool_answers_for_services_of_the_namespaces_that_it_names_and_of_no_other(pools: Pools) -> None:
    pool = DesiredRevision("warm-00001", "warm", "1", "", "", 2, 100, is_pool=True)
    for name in ("guests", "strangers"):
        pools.namespace(name)
    pools.until("warm", pool, shared_with=("guests",))
    assert pools.grants() == [("HTTPRoute", "guests"), ("GRPCRoute", "guests")]
    pools.until("digits", pools.revision("digits", 2, 100))
    pools.until("digits", pools.revision("digits", 3, 100), at="guests")
    until(lambda: pools.answer("digits")[0] == 200, "the gateway has the routes of one", WITHIN_S)
    until(lambda: pools.answer("digits", "guests")[0] == 200, "the gateway has the routes of the other", WITHIN_S)
    assert pools.answer("digits") == (200, "digits-00002", [2, 4, 6, 8])
    assert pools.answer("digits", "guests") == (200, "digits-00003", [3, 6, 9, 12]), "equal names are two models"
    assert pools.answer("digits", "guests", fairlead_service="default/digits")[1] == "digits-00003"
    assert [pools.loaded(f"{name}.digits") for name in ("default", "guests")] == [1, 1], "the replica of the hash"

    pools.apply("digits", pools.revision("digits", 2, 100), at="strangers")
    for name in ("strangers", "guests"):
        pools.steal(name)

    def refusal() -> str:
        pools.again("digits", "strangers")
        return pools.driver.observe("strangers", "digits").message

    until(lambda: "add strangers to sharedWith" in refusal(), "its route is refused", WITHIN_S)
    until(lambda: pools.answer("digits", "strangers")[0] == 500, "the gateway has the refused route", WITHIN_S)
    until(lambda: pools.stolen("guests") == 200, "a route by hand of a namespace that may lead there", WITHIN_S)
    assert pools.stolen("strangers") == 500, "and the same of one that may not"
    assert pools.answer("digits", "guests")[0] == 200

    pools.apply("warm", pool)
    assert pools.grants() == []
    until(lambda: pools.answer("digits", "guests")[0] == 500, "the sharing has ended", WITHIN_S)
    until(lambda: pools.stolen("guests") == 500, "for every route", WITHIN_S)
    assert pools.answer("digits") == (200, "digits-00002", [2, 4, 6, 8])
    pools.delete_all()
