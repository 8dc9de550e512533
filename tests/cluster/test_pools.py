"""Model pools on Kubernetes behind Envoy Gateway: services without pods of their own, and the pool's that answer."""

import http.server
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from integrations.clusters.base import Desired, DesiredRevision, ObservedRevision
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import CATALOG, SERVICE
from integrations.clusters.kubernetes.options import ModelSource
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.removal import is_removed
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import Traffic, infer_json, model, until

pytestmark = pytest.mark.cluster
WITHIN_S = 180.0
POOL = "default/warm"


@dataclass
class Pools:
    """A pool `warm` of two replicas, and services in it, whose models are fetched from a web server."""

    harness: Harness
    driver: KubernetesDriver
    files: Path
    url: str
    generations: dict[str, int] = field(default_factory=dict)
    desired: dict[str, Desired] = field(default_factory=dict)

    def revision(self, service: str, number: int, weight: int, content: bytes = b"") -> DesiredRevision:
        content = content or model(number)
        stored = self.harness.store(content)
        (self.files / f"{number}.onnx").write_bytes(content)
        origin = f"{self.url}/{number}.onnx"
        made = DesiredRevision(
            f"{service}-{number:05}", service, str(number), stored.uri, stored.digest, 1, weight, pool=POOL
        )
        return replace(made, artifact_origin=origin)

    def apply(self, service: str, *revisions: DesiredRevision) -> None:
        self.generations[service] = self.generations.get(service, 0) + 1
        self.desired[service] = Desired("default", service, self.generations[service], revisions)
        self.again(service)

    def again(self, service: str) -> None:
        self.driver.apply(self.desired[service])

    def until(self, service: str, *revisions: DesiredRevision) -> None:
        """Apply again and again, as the reconciler does, until the gateway does what is desired."""
        self.apply(service, *revisions)
        generation = self.generations[service]
        wanted = {each.name: each.weight_percent for each in revisions}

        def look() -> bool:
            self.again(service)
            seen = self.driver.observe("default", service)
            found = {each.name: each.weight_percent for each in seen.revisions if each.ready_replicas == 2}
            return found == wanted and seen.generation == generation and not seen.message

        until(look, f"the gateway gives {wanted}", WITHIN_S)

    def answer(self, service: str, **headers: str) -> tuple[int, str, object]:
        """Return the status, the revision, and the outputs or what was said; `headers` are written with hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{self.harness.gateway.url}/serving/default/{service}/v2/models/{service}/infer"
        found = httpx.post(url, content=infer_json(), headers=sent, timeout=20, trust_env=False)
        said = found.json()["outputs"][0]["data"] if found.status_code == 200 else found.text
        return found.status_code, found.headers.get("fairlead-revision", ""), said

    def loaded(self, name: str) -> int:
        """Return by how many of the pool's replicas a model was loaded."""
        seen = self.driver.observe("default", "warm")
        pages = [self.driver.metrics_page("default", each) for one in seen.revisions for each in one.replicas]
        return sum(f'model="{name}"' in page for page in pages)

    def seen(self, service: str) -> ObservedRevision:
        """Apply once more, and return the service's only revision."""
        self.again(service)
        (found,) = self.driver.observe("default", service).revisions
        return found

    def until_own_answer(self, service: str, replicas: int) -> None:
        """Wait until its own replicas answer, so many; for 0 the pool, and nothing of them is left."""

        def look() -> bool:
            seen = self.seen(service)
            if replicas:
                return not seen.pooled_as and seen.ready_replicas == replicas and seen.weight_percent == 100
            kinds = (resource_types.DEPLOYMENT, resource_types.SERVICE, resource_types.NETWORK_POLICY)
            return bool(seen.pooled_as) and not any(self._list(kind, SERVICE, service) for kind in kinds)

        until(look, f"{replicas} own replicas answer", WITHIN_S)

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
            resource_types.POLICIES[1],
            resource_types.CONFIG_MAP,
        )
        found = [each for kind in kinds for name in self.generations for each in self._list(kind, SERVICE, name)]
        return [*found, *self._list(resource_types.CONFIG_MAP, CATALOG, "warm")]

    def _list(self, kind: resource_types.Kind, label: str, value: str) -> list[str]:
        found = self.harness.api.fetch_list(kind, "default", {label: value})
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

    for service, generation in sorted(pools.generations.items()):
        until(lambda at=(service, generation + 1): is_removed(pools.driver, *at), f"{service} is gone", WITHIN_S)
    assert pools.left() == []


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

    for service, generation in sorted(pools.generations.items()):
        until(lambda at=(service, generation + 1): is_removed(pools.driver, *at), f"{service} is gone", WITHIN_S)
    assert pools.left() == []
