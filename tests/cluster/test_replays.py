"""Versions that answer recorded requests as pods of the real runtime, which serve nobody and leave nothing behind."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import Candidate, Desired, DesiredRevision, Exchange, Resources
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import REPLAY
from integrations.clusters.kubernetes.options import Reach
from tests.cluster._support.removal import remove
from tests.cluster.harness import Harness
from tests.integrations._support.runtimes import model, until

pytestmark = pytest.mark.cluster
X = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
RECORDED = Exchange("a", "digits-00001", "1", 12.5, {"id": "", "inputs": [X]}, {"outputs": []})
KINDS = (resource_types.JOB, resource_types.POD, resource_types.NETWORK_POLICY)


class Scene:
    """A live service of version 1 in the namespace `default`."""

    def __init__(self, cluster: Harness) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.generation = 1
        stored = cluster.store(model(1))
        self.revision = DesiredRevision("digits-00001", "digits", "1", stored.uri, stored.digest, 1, 100)
        cluster.driver.apply(self._desired())
        self.until(lambda: [each.ready_replicas for each in self.revisions()] == [1], "its replica is ready")

    def _desired(self) -> Desired:
        return Desired("default", "digits", self.generation, (self.revision,))

    def revisions(self) -> Any:
        return self.cluster.driver.observe("default", "digits").revisions

    def candidate(self, content: bytes, **more: Any) -> Candidate:
        stored = self.cluster.store(content)
        own: dict[str, Any] = {"namespace": "default", "service": "digits", "replay": "7", **more}
        return Candidate("version 3", "digits", "3", stored.uri, artifact_digest=stored.digest, **own)

    def driver(self, **options: Any) -> KubernetesDriver:
        return KubernetesDriver(self.api, replace(self.cluster.options, **options))

    def there(self) -> list[str]:
        """Return what is there of replays."""
        found = [each for kind in KINDS for each in self.api.list(kind, "default", {}) if REPLAY in _labels(each)]
        return [f"{each['kind']}/{each['metadata']['name']}" for each in found]

    def until(self, look: Any, what: str) -> None:
        until(look, what, 300)

    def remove(self) -> None:
        remove(self.cluster.driver, "digits", self.generation + 1, within_s=300)
        self.until(lambda: not self.there(), "nothing of replays stays")


def _labels(found: dict[str, Any]) -> dict[str, str]:
    return dict(found["metadata"].get("labels", {}))


@pytest.fixture
def scene(cluster: Harness) -> Iterator[Scene]:
    made = Scene(cluster)
    yield made
    made.remove()


@pytest.mark.parametrize("reach", list(Reach))
def test_a_candidate_answers_and_is_no_replica(scene: Scene, reach: Reach) -> None:
    before = scene.revisions()
    with scene.driver(reach=reach).replay(scene.candidate(model(3), model_config={"max_batch_size": 4})) as answer:
        found = [answer(replace(RECORDED, request_id=name)) for name in ("a", "b")]
        assert [each.partition("/")[0] for each in scene.there()] == ["Job", "Pod", "NetworkPolicy"]
        assert scene.revisions() == before
        pod = next(each for each in scene.api.list(resource_types.POD, "default", {}) if REPLAY in _labels(each))
        slices = scene.api.list(resource_types.ENDPOINT_SLICE, "default", {})
        endpoints = [each["targetRef"]["name"] for one in slices for each in one.get("endpoints") or ()]
        assert pod["metadata"]["name"] not in endpoints
        assert endpoints
    assert [each.request_id for each in found] == ["a", "b"]
    assert [(each.revision, each.model_version, each.error_code) for each in found] == [("version 3", "3", "")] * 2
    assert found[0].response["outputs"][0]["data"] == [3, 6, 9, 12]
    scene.until(lambda: not scene.there(), "nothing of the replay stays")


def test_a_request_that_the_version_refuses_is_an_answer(scene: Scene) -> None:
    wrong = replace(RECORDED, request={"id": "", "inputs": [{**X, "shape": [1, 3], "data": [1, 2, 3]}]})
    with scene.driver().replay(scene.candidate(model(3))) as answer:
        found = answer(wrong)
    assert (found.error_code, found.model_version) == ("INVALID_ARGUMENT", "")
    assert "shape" in found.response["error"]


def test_what_an_earlier_attempt_left_is_removed_and_other_replays_are_not(scene: Scene) -> None:
    driver = scene.driver()
    with ExitStack() as running:
        running.enter_context(driver.replay(scene.candidate(model(3))))  # its worker is silent, and counts as dead
        other = running.enter_context(driver.replay(scene.candidate(model(3), replay="8")))
        with driver.replay(scene.candidate(model(3))) as answer:
            scene.until(lambda: len(scene.there()) == 6, "two of the three are left")
            assert answer(RECORDED).model_version == "3"
            assert other(RECORDED).model_version == "3"


def test_a_candidate_whose_pod_is_deleted_tells_it(scene: Scene) -> None:
    with scene.driver().replay(scene.candidate(model(3))) as answer:
        assert answer(RECORDED).model_version == "3"
        for each in scene.api.list(resource_types.JOB, "default", {REPLAY: "7"}):
            scene.api.delete(resource_types.JOB, "default", each["metadata"]["name"], uid=each["metadata"]["uid"])
        scene.until(lambda: not scene.there(), "it is gone")
        with pytest.raises(Unavailable, match="version 3 did not answer request a: its pod was deleted"):
            answer(RECORDED)


def refused(scene: Scene, candidate: Candidate, error: type[Exception], **options: Any) -> str:
    with pytest.raises(error) as told, scene.driver(**options).replay(candidate):
        pytest.fail("it runs")
    scene.until(lambda: not scene.there(), "nothing of the replay stays")
    return str(told.value)


def test_a_model_that_cannot_be_served_is_told_in_the_runtimes_words(scene: Scene) -> None:
    said = refused(scene, scene.candidate(b"garbage"), InvalidInput)
    assert said.startswith("version 3 cannot be served: runtime ended with exit code 2: ")
    assert "is not an ONNX model" in said


def test_files_that_are_others_are_told(scene: Scene) -> None:
    other = replace(scene.candidate(model(3)), artifact_digest="sha256:" + "0" * 64)
    said = refused(scene, other, Unavailable)
    assert said.startswith("version 3 cannot be run on the cluster: prepare ended with exit code 2: ")


def test_what_fits_on_no_node_is_told(scene: Scene) -> None:
    large = scene.candidate(model(3), resources=Resources(cpu_cores=1000))
    said = refused(scene, large, Unavailable, longest_start_s=8)
    assert said.startswith("version 3 was not ready within 8 s: no node takes it: ")


def test_an_image_that_is_not_there_is_told_at_once(scene: Scene) -> None:
    said = refused(scene, scene.candidate(model(3)), Unavailable, runtime_image="nowhere.example/missing:1")
    assert "prepare waits" in said
    assert "nowhere.example/missing:1" in said


def test_a_service_that_is_not_there_has_no_candidates(cluster: Harness) -> None:
    asked = Candidate("version 3", "other", "3", "file:///x", namespace="default", service="other", replay="7")
    with pytest.raises(Unavailable, match="default/other is not on the cluster"), cluster.driver.replay(asked):
        pytest.fail("it runs")


def test_a_candidate_goes_with_its_service(cluster: Harness) -> None:
    scene = Scene(cluster)
    with scene.driver().replay(scene.candidate(model(3))) as answer:
        assert answer(RECORDED).model_version == "3"
        scene.remove()
