"""Pinned pod templates on a real API server, without nodes: what replaces pods, and what does not."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from integrations.clusters.base import Desired, DesiredCompanion, DesiredRevision, Patch, PodTemplates
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import RESTART, SERVICE
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster
OLD = Options(GatewayReference("gateway", "gateways"), "fairlead/serving-runtime:1", "models", "/artifacts")
NEW = replace(OLD, runtime_image="fairlead/serving-runtime:2", drain_s=90, longest_start_s=900)
PREDICTOR, TRANSFORMER, EXPLAINER = "digits-00001", "digits-00001-transformer", "digits-00001-explainer"
_numbers = itertools.count(1)


@dataclass
class Place:
    """Drivers of an installation before and after its cluster file was changed, and a namespace of its own."""

    old: KubernetesDriver
    new: KubernetesDriver
    api: Api
    client: httpx.Client
    namespace: str

    def desired(self, generation: int, *revisions: DesiredRevision) -> Desired:
        return Desired(self.namespace, "digits", generation, revisions)

    def deployment(self, name: str = PREDICTOR) -> dict[str, Any]:
        found = self.api.list(resource_types.DEPLOYMENT, self.namespace, {SERVICE: "digits"})
        return next(each for each in found if each["metadata"]["name"] == name)

    def image(self, name: str = PREDICTOR) -> str:
        return str(self.deployment(name)["spec"]["template"]["spec"]["containers"][0]["image"])

    def templates(self, *names: str) -> list[Any]:
        return [self.deployment(name)["spec"]["template"] for name in names]

    def edit(self, changes: dict[str, Any]) -> None:
        """Change a Deployment as a person does with kubectl edit."""
        headers = {"content-type": "application/strategic-merge-patch+json"}
        path = f"{resource_types.DEPLOYMENT.path(self.namespace, PREDICTOR)}?fieldManager=kubectl-edit"
        self.client.patch(path, json=changes, headers=headers).raise_for_status()

    def pins(self, driver: KubernetesDriver, desired: Desired) -> PodTemplates:
        return driver.pod_templates(desired)[PREDICTOR]


@pytest.fixture
def place(plane: ControlPlane) -> Iterator[Place]:
    namespace = f"templates-{next(_numbers)}"
    api = Api(plane.kubeconfig)
    with plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
        yield Place(KubernetesDriver(api, OLD), KubernetesDriver(api, NEW), api, client, namespace)
    api.close()


PATCHES = (
    Patch("patches[0]", "Deployment", operations=({"op": "add", "path": "/spec/minReadySeconds", "value": 3},)),
    Patch(
        "patches[1]",
        "Deployment",
        PREDICTOR,
        operations=({"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--log-verbose=1"},),
    ),
    Patch("patches[2]", "Deployment", merge={"spec": {"template": {"spec": {"priorityClassName": "high"}}}}),
)


def revision(number: int, **more: Any) -> DesiredRevision:
    artifact = (f"file:///artifacts/{number}", f"sha256:{number}")
    fields = {
        "replicas": 1,
        "weight_percent": 100 if number == 1 else 0,
        "env": {"A": "1", "EMPTY": ""},
        "model_config": {"max_batch_size": 4},
        "patches": PATCHES,
        **more,
    }
    return DesiredRevision(f"digits-{number:05}", "digits", str(number), *artifact, **fields)


ITS = DesiredCompanion(image="example/tokenizer:1", replicas=1)


def test_another_runtime_image_and_cluster_file_replace_no_pod_of_what_has_served(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1, transformer=ITS, explainer=ITS)))
    names = (PREDICTOR, TRANSFORMER, EXPLAINER)
    before = place.templates(*names)
    served = revision(1, transformer=ITS, explainer=ITS, has_served=True)
    assert place.new.apply(place.desired(2, served, revision(2))) == []
    assert place.templates(*names) == before, "what runs stays before it is recorded"
    pinned = replace(served, pod_templates=place.pins(place.new, place.desired(2, served)))
    assert set(pinned.pod_templates) == set(names)
    for driver in (place.new, place.old, place.new):
        assert driver.apply(place.desired(3, pinned, revision(2))) == []
        assert place.templates(*names) == before
    assert place.deployment()["spec"]["minReadySeconds"] == 3
    assert place.image("digits-00002") == NEW.runtime_image, "a new revision is rendered by the present file"


def test_what_an_upgrade_pins_is_what_was_applied_not_what_is_rendered_now(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1)))
    served = revision(1, has_served=True)
    of_old = place.pins(place.old, place.desired(1, served))
    assert place.pins(place.new, place.desired(2, served)) == of_old
    assert place.new.pod_templates(place.desired(2, replace(served, pod_templates=of_old))) == {}
    assert place.new.pod_templates(place.desired(2, revision(1))) == {}, "it has not served"


def test_a_pod_template_changed_by_hand_is_put_back_to_what_was_pinned(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1)))
    before = place.deployment()["spec"]["template"]
    served = revision(1, has_served=True)
    pinned = replace(served, pod_templates=place.pins(place.old, place.desired(1, served)))
    place.edit({"spec": {"template": {"spec": {"containers": [{"name": "runtime", "image": "mine:1"}]}}}})
    (found,) = place.new.apply(place.desired(2, pinned))
    assert found.path == "spec.template.spec.containers[name=runtime].image"
    assert (found.wanted, found.found, found.healed) == (f'"{OLD.runtime_image}"', '"mine:1"', True)
    assert place.deployment()["spec"]["template"] == before
    place.client.delete(resource_types.DEPLOYMENT.path(place.namespace, PREDICTOR)).raise_for_status()
    assert [each.wanted for each in place.new.apply(place.desired(2, pinned))] == ["the object"]
    assert place.deployment()["spec"]["template"] == before, "one deleted by hand comes back as it was"


def test_a_field_changed_by_hand_at_the_upgrade_is_no_part_of_what_is_pinned(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1)))
    served = revision(1, has_served=True)
    clean = place.pins(place.old, place.desired(1, served))
    place.edit({"spec": {"template": {"spec": {"containers": [{"name": "runtime", "command": ["sh"]}]}}}})
    assert place.pins(place.new, place.desired(2, served)) == clean


def test_a_restart_replaces_the_pods_by_the_same(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1)))
    before = place.deployment()["spec"]["template"]
    served = revision(1, has_served=True)
    pinned = replace(served, pod_templates=place.pins(place.old, place.desired(1, served)))
    place.new.apply(place.desired(2, replace(pinned, restart_number=1)))
    after = place.deployment()["spec"]["template"]
    assert after["metadata"]["annotations"].pop(RESTART) == "1"
    assert before["metadata"]["annotations"].pop(RESTART) == "0"
    assert after == before


def test_a_revision_that_never_was_ready_gets_a_corrected_image(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1)))
    place.new.apply(place.desired(1, revision(1)))
    assert place.image() == NEW.runtime_image


def test_what_has_served_goes_on_where_the_cluster_file_could_not_render_it_any_more(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1)))
    served = revision(1, has_served=True)
    pinned = replace(served, pod_templates=place.pins(place.old, place.desired(1, served)))
    moved = replace(NEW, artifacts_root="/elsewhere", allowed_registries=("registry.example.com",))
    driver = KubernetesDriver(place.api, moved)
    driver.check(place.desired(2, pinned))
    assert driver.apply(place.desired(2, pinned)) == []
    assert place.image() == OLD.runtime_image


def test_what_a_new_revision_would_get_is_named_and_what_the_server_wrote_otherwise_is_not(place: Place) -> None:
    place.old.apply(place.desired(1, revision(1, transformer=ITS)))
    served = revision(1, transformer=ITS, has_served=True)
    adopted = place.pins(place.new, place.desired(1, served))
    pinned = place.desired(2, replace(served, pod_templates=adopted), revision(2))
    assert place.old.template_changes(pinned) == {PREDICTOR: ""}
    found = place.new.template_changes(pinned)[PREDICTOR]
    assert found.startswith(f"image {OLD.runtime_image} -> {NEW.runtime_image}; ")
    assert "terminationGracePeriodSeconds 40 -> 100" in found
    refusing = KubernetesDriver(place.api, replace(NEW, artifacts_root="/elsewhere"))
    assert refusing.template_changes(pinned)[PREDICTOR].startswith("a new revision would be refused now: the artifact")
