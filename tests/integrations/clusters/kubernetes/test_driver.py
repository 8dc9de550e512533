"""The driver on a real control plane, without nodes: what it writes, and what it does where others write too."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from common.errors import Conflict, InvalidInput, NotFound
from integrations.clusters.base import Autoscaling, Desired, DesiredCompanion, DesiredRevision, Drift, DriftPolicy
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import SERVICE
from integrations.clusters.kubernetes.manifests.workloads import volumes
from integrations.clusters.kubernetes.options import GatewayReference, Keda, Options
from tests.cluster._support.definitions import define_keda
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
OPTIONS = Options(GatewayReference("gateway", "gateways"), "fairlead/serving-runtime:test", "models", "/artifacts")
HEAL, KEEP = DriftPolicy.HEAL, DriftPolicy.KEEP
HERS = {"team": "vision"}
_numbers = itertools.count(1)


@dataclass
class Place:
    """A driver and a namespace of its own."""

    driver: KubernetesDriver
    api: Api
    client: httpx.Client
    namespace: str

    def apply(self, generation: int, *revisions: DesiredRevision, **more: Any) -> list[Drift]:
        return self.driver.apply(Desired(self.namespace, "digits", generation, revisions, **more))

    def objects(self, kind: resource_types.Kind) -> dict[str, dict[str, Any]]:
        found = self.api.list(kind, self.namespace, {SERVICE: "digits"})
        return {each["metadata"]["name"]: each for each in found}

    def written(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return everything that the driver writes, and who wrote it when, without what controllers go on writing."""
        return {
            (kind.kind, name): _without_status(each)
            for kind in (*resource_types.PRUNED, resource_types.CONFIG_MAP)
            if kind is not resource_types.DEPLOYMENT  # whose controller writes annotations too
            for name, each in self.objects(kind).items()
        }

    def change(self, kind: resource_types.Kind, name: str, changes: dict[str, Any]) -> None:
        """Change an object as a person does with kubectl edit."""
        headers = {"content-type": "application/merge-patch+json"}
        path = f"{kind.path(self.namespace, name)}?fieldManager=kubectl-edit"
        self.client.patch(path, json=changes, headers=headers).raise_for_status()

    def scale(self, name: str, replicas: int, *, by: str) -> None:
        """Change the number of replicas as `kubectl scale` and autoscalers do."""
        headers = {"content-type": "application/merge-patch+json"}
        path = f"{resource_types.DEPLOYMENT.path(self.namespace, name)}/scale?fieldManager={by}"
        self.client.patch(path, json={"spec": {"replicas": replicas}}, headers=headers).raise_for_status()


def _without_status(there: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in there["metadata"].items() if name != "resourceVersion"}
    metadata["managedFields"] = [each for each in metadata["managedFields"] if each.get("subresource") != "status"]
    return {**{name: value for name, value in there.items() if name != "status"}, "metadata": metadata}


@pytest.fixture
def place(plane: ControlPlane) -> Iterator[Place]:
    namespace = f"driver-{next(_numbers)}"
    api = Api(plane.kubeconfig)
    with plane.client() as client:
        body = {"metadata": {"name": namespace}}
        client.post("/api/v1/namespaces", json=body).raise_for_status()
        yield Place(KubernetesDriver(api, OPTIONS), api, client, namespace)
    api.close()


def revision(number: int, weight: int, **more: Any) -> DesiredRevision:
    fields = {"replicas": 1, **more}
    artifact = (f"file:///artifacts/{number}", f"sha256:{number}")
    return DesiredRevision(f"digits-{number:05}", "digits", str(number), *artifact, weight_percent=weight, **fields)


def test_the_same_again_writes_nothing(place: Place) -> None:
    wanted = (revision(1, 90), revision(2, 10, model_config={"max_batch_size": 4}, restart_number=2))
    place.apply(1, *wanted)
    place.apply(1, *wanted)  # as it was read once, so that what holds is written down
    before = place.written()
    place.apply(1, *wanted)
    assert place.written() == before


def test_a_service_is_known_until_the_last_of_it_is_removed_and_may_begin_again(place: Place) -> None:
    place.apply(7, revision(1, 100))

    def is_gone() -> bool:
        place.driver.delete(place.namespace, "digits", 8)
        seen = place.driver.observe(place.namespace, "digits")
        left = [kind.kind for kind in (*resource_types.PRUNED, resource_types.CONFIG_MAP) if place.objects(kind)]
        assert seen.generation == (8 if left else 0), left
        return not left

    until(is_gone, "the end of all objects", 60)
    place.apply(1, revision(1, 100))
    assert "digits-00001" in place.objects(resource_types.DEPLOYMENT)


def test_a_service_that_is_wanted_again_meanwhile_stays(place: Place) -> None:
    place.apply(1, revision(1, 100))
    place.driver.delete(place.namespace, "digits", 2)
    place.apply(3, revision(1, 100))
    place.apply(2, revision(2, 100))
    assert set(place.objects(resource_types.DEPLOYMENT)) == {"digits-00001"}
    assert set(place.objects(resource_types.HTTP_ROUTE)), "the routes were the first to go"


def test_what_was_deleted_by_hand_comes_back_and_is_told(place: Place) -> None:
    place.apply(1, revision(1, 100))
    place.client.delete(resource_types.SERVICE.path(place.namespace, "digits-00001")).raise_for_status()
    assert place.apply(1, revision(1, 100)) == [Drift("Service/digits-00001", "", "the object", "", healed=True)]
    assert list(place.objects(resource_types.SERVICE)) == ["digits-00001"]
    assert place.apply(1, revision(1, 100)) == []


def test_what_was_deleted_by_hand_stays_away_where_drift_is_kept(place: Place) -> None:
    place.apply(1, revision(1, 100), drift=KEEP)
    place.client.delete(resource_types.SERVICE.path(place.namespace, "digits-00001")).raise_for_status()
    for _ in range(2):
        assert [each.object for each in place.apply(1, revision(1, 100), drift=KEEP)] == ["Service/digits-00001"]
    assert list(place.objects(resource_types.SERVICE)) == []


def test_a_revision_that_comes_back_after_it_ended_is_no_drift(place: Place) -> None:
    place.apply(1, revision(1, 100), revision(2, 0))
    place.apply(2, revision(1, 100))
    assert place.apply(3, revision(1, 100), revision(2, 0), drift=KEEP) == []
    assert list(place.objects(resource_types.DEPLOYMENT)) == ["digits-00001", "digits-00002"]


def test_a_field_that_somebody_changed_is_put_back_and_told_with_who_it_was(place: Place) -> None:
    place.apply(1, revision(1, 100))
    place.change(resource_types.DISRUPTION_BUDGET, "digits-00001", {"spec": {"maxUnavailable": 5}})
    (found,) = place.apply(1, revision(1, 100))
    assert (found.object, found.path) == ("PodDisruptionBudget/digits-00001", "spec.maxUnavailable")
    assert (found.wanted, found.found, found.manager, found.healed) == ("1", "5", "kubectl-edit", True)
    assert found.at == pytest.approx(time.time(), abs=600)
    assert place.objects(resource_types.DISRUPTION_BUDGET)["digits-00001"]["spec"]["maxUnavailable"] == 1
    assert place.apply(1, revision(1, 100)) == []


def test_a_field_that_somebody_changed_is_left_where_drift_is_kept_and_all_else_is_applied(place: Place) -> None:
    place.apply(1, revision(1, 100), drift=KEEP)
    place.change(
        resource_types.DISRUPTION_BUDGET, "digits-00001", {"spec": {"maxUnavailable": 5}, "metadata": {"labels": HERS}}
    )
    for _ in range(2):
        (found,) = place.apply(2, revision(1, 100), revision(2, 0), drift=KEEP)
        assert (found.path, found.healed) == ("spec.maxUnavailable", False)
    budget = place.objects(resource_types.DISRUPTION_BUDGET)["digits-00001"]
    assert (budget["spec"]["maxUnavailable"], budget["metadata"]["labels"]["team"]) == (5, "vision")
    assert list(place.objects(resource_types.DEPLOYMENT)) == ["digits-00001", "digits-00002"]
    place.apply(2, revision(1, 100), revision(2, 0))
    budget = place.objects(resource_types.DISRUPTION_BUDGET)["digits-00001"]
    assert (budget["spec"]["maxUnavailable"], budget["metadata"]["labels"]["team"]) == (1, "vision")


def test_a_route_and_a_pod_template_that_were_edited_are_put_back(place: Place) -> None:
    place.apply(1, revision(1, 90), revision(2, 10))
    place.apply(1, revision(1, 90), revision(2, 10))
    route = place.objects(resource_types.HTTP_ROUTE)["digits"]["spec"]["rules"]
    route[0]["backendRefs"][0]["weight"] = 1
    place.change(resource_types.HTTP_ROUTE, "digits", {"spec": {"rules": route}})
    containers = place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["template"]["spec"]["containers"]
    containers[0]["image"] = "other:1"
    containers.append({"name": "sidecar", "image": "sidecar:1"})
    place.change(
        resource_types.DEPLOYMENT, "digits-00001", {"spec": {"template": {"spec": {"containers": containers}}}}
    )
    found = {each.object: each for each in place.apply(1, revision(1, 90), revision(2, 10))}
    assert found["HTTPRoute/digits"].path == "spec.rules[0].backendRefs[0].weight"
    assert found["Deployment/digits-00001"].path == "spec.template.spec.containers[name=runtime].image"
    assert place.objects(resource_types.HTTP_ROUTE)["digits"]["spec"]["rules"][0]["backendRefs"][0]["weight"] == 90
    there = place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["template"]["spec"]["containers"]
    assert [each["image"] for each in there] == [OPTIONS.runtime_image, "sidecar:1"]
    assert place.apply(1, revision(1, 90), revision(2, 10)) == []


def test_a_field_of_an_allowed_manager_is_left_to_them_and_is_no_drift(place: Place) -> None:
    place.driver = KubernetesDriver(place.api, replace(OPTIONS, allowed_managers=("kubectl-edit",)))
    place.apply(1, revision(1, 100))
    place.change(resource_types.DISRUPTION_BUDGET, "digits-00001", {"spec": {"maxUnavailable": 5}})
    assert place.apply(2, revision(1, 100)) == []
    assert place.objects(resource_types.DISRUPTION_BUDGET)["digits-00001"]["spec"]["maxUnavailable"] == 5


def test_replicas_that_were_scaled_by_hand_are_put_back_or_left(place: Place) -> None:
    place.apply(1, revision(1, 100))

    def replicas_after(policy: DriftPolicy) -> int:
        place.scale("digits-00001", 4, by="kubectl")
        (found,) = place.apply(1, revision(1, 100), drift=policy)
        assert (found.path, found.wanted, found.found, found.manager) == ("spec.replicas", "1", "4", "kubectl")
        return int(place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"])

    assert replicas_after(KEEP) == 4
    assert replicas_after(HEAL) == 1


def test_replicas_that_an_allowed_manager_set_are_left(place: Place) -> None:
    place.driver = KubernetesDriver(place.api, replace(OPTIONS, allowed_managers=("kube-controller-manager",)))
    place.apply(1, revision(1, 100))
    place.scale("digits-00001", 4, by="kube-controller-manager")
    assert place.apply(2, revision(1, 100, replicas=2)) == []
    assert place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"] == 4


def test_an_object_that_never_was_ours_is_reported_and_not_taken_over(place: Place) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "digits-00001"},
        "spec": {"maxUnavailable": 5, "selector": {}},
    }
    place.client.post(resource_types.DISRUPTION_BUDGET.path(place.namespace), json=budget).raise_for_status()
    with pytest.raises(Conflict, match=r"(.|\n)*maxUnavailable"):
        place.apply(1, revision(1, 100))
    assert list(place.objects(resource_types.DEPLOYMENT)) == ["digits-00001"]


def test_replicas_are_scaled_and_belong_to_nobody_else(place: Place) -> None:
    place.apply(1, revision(1, 100, replicas=3))
    assert place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"] == 3

    def scaled() -> bool:
        # Again, as the reconciler does: a number is set only as it was read, and others write the status there.
        place.apply(2, revision(1, 100, replicas=2, restart_number=1))
        return bool(place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"] == 2)

    until(scaled, "there are two", 60)
    deployment = place.objects(resource_types.DEPLOYMENT)["digits-00001"]
    assert deployment["spec"]["template"]["metadata"]["annotations"]["fairlead/restart-number"] == "1"


def test_an_autoscaler_goes_up_from_what_the_reconciler_wants_and_is_not_fought(place: Place) -> None:
    driver = KubernetesDriver(place.api, replace(OPTIONS, custom_metrics=True))

    def wish(generation: int, replicas: int) -> int:
        scaling = Autoscaling(5, {"concurrency": 7.5})
        wanted = revision(1, 100, replicas=replicas, autoscaling=scaling)
        driver.apply(Desired(place.namespace, "digits", generation, (wanted,)))
        return int(place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"])

    assert wish(1, 2) == 2
    place.scale("digits-00001", 4, by="kube-controller-manager")  # as under load
    assert wish(1, 2) == 4
    assert wish(2, 5) == 5
    assert place.objects(resource_types.AUTOSCALER)["digits-00001"]["spec"]["minReplicas"] == 5
    place.apply(3, revision(1, 100, replicas=1))
    assert place.objects(resource_types.AUTOSCALER) == {}
    assert place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"] == 1


def test_keda_and_its_autoscaler_take_the_place_of_ours_and_leave_it_again(place: Place) -> None:
    define_keda(place.client)
    scaling = Autoscaling(5, {"concurrency": 7.5})
    generations = itertools.count(1)

    def wish(options: Options, replicas: int) -> KubernetesDriver:
        driver = KubernetesDriver(place.api, options)
        wanted = revision(1, 100, replicas=replicas, autoscaling=scaling)
        driver.apply(Desired(place.namespace, "digits", next(generations), (wanted,)))
        return driver

    with_keda = replace(OPTIONS, keda=Keda("http://prometheus.monitoring:9090"))
    wish(replace(OPTIONS, custom_metrics=True), 1)
    assert set(place.objects(resource_types.AUTOSCALER)) == {"digits-00001"}
    wish(with_keda, 2)
    assert place.objects(resource_types.AUTOSCALER) == {}, "one alone follows the load"
    (asked,) = place.objects(resource_types.SCALED_OBJECT).values()
    assert asked["spec"]["minReplicaCount"] == 2

    _as_keda_does(place, asked)
    place.scale("digits-00001", 4, by="kube-controller-manager")  # as under load
    seen = wish(with_keda, 3).observe(place.namespace, "digits").revision("digits-00001")
    assert seen is not None
    assert seen.scaling is not None
    assert seen.scaling.replicas == 4, "what KEDA's autoscaler came to"
    assert set(place.objects(resource_types.AUTOSCALER)) == {"keda-hpa-digits-00001"}, "it is KEDA's to remove"
    assert place.objects(resource_types.SCALED_OBJECT)["digits-00001"]["spec"]["minReplicaCount"] == 3
    assert place.objects(resource_types.DEPLOYMENT)["digits-00001"]["spec"]["replicas"] == 4

    wish(OPTIONS, 1)
    assert place.objects(resource_types.SCALED_OBJECT) == {}, "the operator gave KEDA up"


def _as_keda_does(place: Place, asked: dict[str, Any]) -> None:
    """Make the autoscaler that KEDA's controller makes of a ScaledObject (KEDA 2.21: newHPAForScaledObject)."""
    metadata = asked["metadata"]
    owner = {"apiVersion": asked["apiVersion"], "kind": asked["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    labels = {**metadata["labels"], "scaledobject.keda.sh/name": metadata["name"]}
    external = {"metric": {"name": "s0-prometheus"}, "target": {"type": "AverageValue", "averageValue": "7500m"}}
    made = {
        "metadata": {
            "name": f"keda-hpa-{metadata['name']}",
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "scaleTargetRef": asked["spec"]["scaleTargetRef"],
            "minReplicas": asked["spec"]["minReplicaCount"],
            "maxReplicas": asked["spec"]["maxReplicaCount"],
            "metrics": [{"type": "External", "external": external}],
        },
    }
    place.client.post(resource_types.AUTOSCALER.path(place.namespace), json=made).raise_for_status()


def test_a_share_of_copies_is_refused_where_the_gateway_cannot_make_it(place: Place) -> None:
    gateways = "/apis/gateway.networking.k8s.io/v1"
    own = {"apiVersion": "gateway.networking.k8s.io/v1", "metadata": {"name": place.namespace}}
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    for path, body in (
        ("gatewayclasses", {"kind": "GatewayClass", **own, "spec": {"controllerName": "example.org/plain"}}),
        (
            f"namespaces/{place.namespace}/gateways",
            {"kind": "Gateway", **own, "spec": {"gatewayClassName": place.namespace, "listeners": [listener]}},
        ),
    ):
        place.client.post(f"{gateways}/{path}", json=body).raise_for_status()
    reference = GatewayReference(place.namespace, place.namespace)
    driver = KubernetesDriver(place.api, replace(OPTIONS, gateway=reference))

    def wish(percent: int) -> Desired:
        return Desired(place.namespace, "digits", 1, (revision(1, 100), revision(2, 0, mirror_percent=percent)))

    with pytest.raises(InvalidInput, match="HTTPRouteRequestPercentageMirror"):
        driver.apply(wish(20))
    assert place.objects(resource_types.DEPLOYMENT) == {}
    driver.apply(wish(100))
    assert list(place.objects(resource_types.DEPLOYMENT)) == ["digits-00001", "digits-00002"]


def test_what_is_refused_changes_nothing(place: Place) -> None:
    place.apply(1, revision(1, 100))
    before = place.written()
    with pytest.raises(InvalidInput, match=r"serves other"):
        place.apply(2, replace(revision(1, 100), model_name="other"))
    assert place.written() == before


def _volume_sizes(place: Place, name: str) -> dict[str, str]:
    volumes = place.objects(resource_types.DEPLOYMENT)[name]["spec"]["template"]["spec"]["volumes"]
    return {each["name"]: each["emptyDir"].get("sizeLimit", "") for each in volumes if "emptyDir" in each}


def test_a_deployment_of_an_earlier_release_keeps_volumes_without_a_size_and_the_next_revision_gets_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(volumes, "empty", lambda name, _size: {"name": name, "emptyDir": {}})
        place.apply(1, revision(1, 100))
    before = place.objects(resource_types.DEPLOYMENT)["digits-00001"]["metadata"]["generation"]
    assert place.apply(2, revision(1, 100, has_served=True), revision(2, 0)) == []
    after = place.objects(resource_types.DEPLOYMENT)["digits-00001"]["metadata"]["generation"]
    assert after == before, "its pods are not replaced"
    assert _volume_sizes(place, "digits-00001") == {"models": "", "prepare-tmp": "", "tmp": "", "shm": "67108864"}
    assert _volume_sizes(place, "digits-00002") == {
        "models": "21Gi",
        "prepare-tmp": "4Gi",
        "tmp": "4Gi",
        "shm": "67108864",
    }


def test_another_maximum_size_of_models_replaces_no_pods(place: Place) -> None:
    place.apply(1, revision(1, 100))
    larger = KubernetesDriver(place.api, replace(OPTIONS, max_model_bytes=50 << 30))
    larger.apply(Desired(place.namespace, "digits", 2, (revision(1, 100, has_served=True), revision(2, 0))))
    assert _volume_sizes(place, "digits-00001")["models"] == "21Gi"
    assert _volume_sizes(place, "digits-00002")["models"] == "101Gi"


def test_an_image_of_another_registry_never_reaches_the_cluster_and_one_that_runs_goes_on(place: Place) -> None:
    its = DesiredCompanion(image="registry.example.com/tokenizer:1", replicas=1)
    place.apply(1, revision(1, 100, transformer=its))
    strict = KubernetesDriver(place.api, replace(OPTIONS, allowed_registries=("docker.io/fairlead",)))
    running = revision(1, 100, transformer=its)
    strict.apply(Desired(place.namespace, "digits", 2, (running,)))
    strict.check(Desired(place.namespace, "digits", 3, (running, revision(2, 0))))
    wanted = Desired(place.namespace, "digits", 3, (running, revision(2, 0, transformer=its)))
    for refuses in (strict.check, strict.apply):
        with pytest.raises(InvalidInput, match=r"00002-transformer: 'registry.example.com/tokenizer:1' is an im"):
            refuses(wanted)
    assert "digits-00002-transformer" not in place.objects(resource_types.DEPLOYMENT)


def test_a_namespace_that_is_not_there_is_told(place: Place) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        place.driver.apply(Desired("nowhere", "digits", 1, (revision(1, 100),)))


def test_a_gateway_that_is_not_there_is_told(place: Place) -> None:
    options = replace(OPTIONS, gateway=GatewayReference("other", "gateways"))
    (component,) = KubernetesDriver(place.api, options).inventory().components
    assert (component.ready, component.message) == (
        False,
        "there is no Gateway other in gateways; create it, or name another",
    )


def test_a_route_that_no_gateway_speaks_of_gives_nobody_weight(place: Place) -> None:
    place.apply(1, revision(1, 100))
    options = replace(OPTIONS, gateway=GatewayReference("other", "gateways"))
    driver = KubernetesDriver(place.api, options)
    driver.apply(Desired(place.namespace, "digits", 2, (revision(1, 100),)))
    seen = driver.observe(place.namespace, "digits")
    assert "the gateway other in gateways says nothing of" in seen.message
    assert [each.weight_percent for each in seen.revisions] == [0]
