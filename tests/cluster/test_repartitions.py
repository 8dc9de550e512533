"""A node that is drained, cut anew and given back, on a real API server and scheduler; the tests are MIG manager."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_default
from common.errors import DoesNotFit
from deployments.models import InferenceService
from deployments.reconcile import reconciler
from deployments.services import service_apply
from deployments.services.revisions.gpu_assignment import gpus_note
from gpus.models import Repartition
from gpus.reconcile.repartition import tick
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_abort, repartition_approve, repartition_propose
from integrations.clusters.base import DesiredNode
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply.gpu_nodes import CONFIG_MAP, KEY
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import Repartition as Allowed
from tests.cluster._support.node.mig_manager import mig_manager
from tests.cluster._support.nodes import forget, make_node
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import harness
from tests.cluster.plane import ControlPlane
from tests.deployments._support.accelerators import name_image
from tests.integrations._support.runtimes import until

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
_SMALL, LARGE, _NODE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "gpu-to-cut"
_OLD = "all-1g.10gb"
_WITHIN_S = 180.0


class KilledError(BaseException):
    """The worker ended at this moment."""


class Mortal(KubernetesDriver):
    """A driver whose worker may end just before, or just after, it works on a node."""

    dies: str = ""

    def apply_node(self, desired: DesiredNode) -> list[str]:
        if self.dies == "before":
            raise KilledError
        held = list(super().apply_node(desired))
        if self.dies == "after":
            raise KilledError
        return held


@dataclass
class Scene:
    """The platform, the node, and who does on it what a kubelet and MIG manager do."""

    platform: OnKubernetes
    driver: Mortal
    fails: set[str] = field(default_factory=set)
    asleep: bool = False

    @property
    def node(self) -> Any:
        with self.platform.harness.plane.client() as client:
            return client.get(resource_types.NODE.path("", _NODE)).raise_for_status().json()

    def propose(self, **order: Any) -> Repartition:
        return repartition_propose(
            cluster=Cluster.objects.get(),
            order=RepartitionOrder(**order),
            nodes=self.driver.inventory(with_nodes=True),
            actor="alice",
            now=self.platform.clock(),
        )

    def approve(self, row: Repartition) -> Repartition:
        nodes, now = self.driver.inventory(with_nodes=True), self.platform.clock()
        return repartition_approve(cluster="local", repartition_id=row.pk, nodes=nodes, reason="", actor="bob", now=now)

    def abort(self, row: Repartition) -> None:
        now = self.platform.clock()
        repartition_abort(cluster="local", repartition_id=row.pk, reason="", actor="bob", now=now)

    def turn(self, row: Repartition) -> Repartition:
        """Let a sweep come to the repartition and to every service, then a kubelet and MIG manager."""
        self.platform.clock.go_on(1.0)
        row.refresh_from_db()
        if row.settled_at is None:
            tick(row, self.driver, self.platform.clock)
        for service in InferenceService.objects.all():
            reconciler.tick(service.pk, replace(self.platform.outside, driver=self.driver))
        self._kubelet()
        if not self.asleep:
            mig_manager(self.platform.harness.plane, _NODE, self.fails)
        row.refresh_from_db()
        return row

    def until(self, row: Repartition, look: Callable[[], object], what: str) -> None:
        until(lambda: look() if self.turn(row) else None, what, _WITHIN_S)

    def pods(self, service: str) -> list[str]:
        """Return the node of each pod of a service that stays; empty where it waits for one."""
        found = self.platform.harness.api.list(resource_types.POD, "default", {"fairlead/service": service})
        return [each["spec"].get("nodeName", "") for each in found if "deletionTimestamp" not in each["metadata"]]

    def _kubelet(self) -> None:
        """End the pods of the node that were told to."""
        with self.platform.harness.plane.client() as client:
            found = client.get(
                resource_types.POD.path("default"), params={"fieldSelector": f"spec.nodeName={_NODE}"}
            ).json()
            for pod in found["items"]:
                if "deletionTimestamp" in pod["metadata"]:
                    place = resource_types.POD.path("default", pod["metadata"]["name"])
                    client.request("DELETE", place, json={"gracePeriodSeconds": 0})


@pytest.fixture
def scene(plane: ControlPlane, tmp_path: Path) -> Iterator[Scene]:
    """A GPU in seven slices, and the ConfigMap that MIG manager reads."""
    file = {
        "version": "v1",
        "mig-configs": {_OLD: [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}]},
    }
    with harness(plane, tmp_path) as running, plane.client() as client:
        make_node(running, _NODE, {_SMALL: "7"}, mig_config=_OLD, mig_config_state="success")
        body = {"metadata": {"name": CONFIG_MAP}, "data": {KEY: yaml.safe_dump(file)}}
        client.post(resource_types.CONFIG_MAP.path("default"), json=body).raise_for_status()
        options = replace(running.options, gpu_runtime_image="fairlead/runtime:cuda", repartition=Allowed("default", 0))
        platform = OnKubernetes(harness=running)
        platform.version(1)
        cluster_default(now=platform.clock())
        name_image("fairlead/runtime:cuda", repartition={"namespace": "default", "configDelay": "0s"})
        yield Scene(platform, Mortal(running.api, options))
        client.delete(resource_types.CONFIG_MAP.path("default", CONFIG_MAP)).raise_for_status()
        for service in InferenceService.objects.all():
            forget(running, service.name)
        client.delete(resource_types.NODE.path("", _NODE)).raise_for_status()


def document(scene: Scene, name: str, resource: str) -> dict[str, Any]:
    found = scene.platform.document(policy=None)
    found["metadata"]["name"] = name
    found["spec"]["predictor"]["model"]["resources"] = {"limits": {resource: 1}}
    return found


def apply(scene: Scene, name: str, resource: str) -> None:
    cluster, now = Cluster.objects.get(), scene.platform.clock()
    gpus_note(cluster_id=cluster.pk, nodes=scene.driver.inventory(with_nodes=True), now=now)
    wish = document(scene, name, resource)
    service_apply(document=wish, namespace=None, name=None, actor="alice", now=now)


def test_a_refused_service_gets_its_slice_by_a_cut_that_was_approved(scene: Scene) -> None:
    apply(scene, "digits", _SMALL)
    with pytest.raises(DoesNotFit, match=r"with GPU 0 of gpu-to-cut cut into 4 x 1g\.10gb and 1 x 3g\.40gb"):
        apply(scene, "larger", LARGE)
    service = InferenceService.objects.get()
    outside = replace(scene.platform.outside, driver=scene.driver)
    until(lambda: reconciler.tick(service.pk, outside) and scene.pods("digits") == [_NODE], "a pod is there", _WITHIN_S)
    row = scene.propose(file=document(scene, "larger", LARGE))
    assert [name.rpartition("-")[0][:20] for name in row.leaving] == ["default/digits-00001"]
    [on_node] = [each for each in scene.driver.inventory(with_nodes=True).gpus if each.node == _NODE]
    assert [pod.revision for pod in on_node.pods] == ["digits-00001"], "by whose budget it is let go"
    assert "disruption" not in row.why, "one pod of a revision is"
    scene.approve(row)
    for dies in ("before", "after"):
        scene.driver.dies = dies
        with pytest.raises(KilledError):
            scene.turn(row)
    scene.driver.dies = ""
    scene.asleep = True
    scene.until(row, lambda: row.phase == "Cutting", "nothing is left on the node")
    scene.until(row, lambda: scene.pods("digits") == [""], "the evicted pod's successor waits")
    assert scene.node["spec"]["unschedulable"]
    scene.driver.dies = "after"
    with pytest.raises(KilledError):
        scene.turn(row)
    scene.driver.dies, scene.asleep = "", False
    scene.until(row, lambda: row.settled_at is not None, "the node is cut and given back")
    assert (row.phase, scene.node["spec"].get("unschedulable")) == ("Done", None)
    apply(scene, "larger", LARGE)
    both = [[_NODE], [_NODE]]
    scene.until(row, lambda: [scene.pods("digits"), scene.pods("larger")] == both, "both services have a slice")


@pytest.mark.parametrize("by_hand", [False, True], ids=["MIG manager fails", "aborted while it is cut"])
def test_whatever_goes_wrong_the_node_takes_pods_with_its_old_cut(scene: Scene, by_hand: bool) -> None:
    row = scene.approve(scene.propose(demands=("1 x 3g.40gb",)))
    scene.asleep, scene.fails = by_hand, {row.config}
    if by_hand:
        scene.until(row, lambda: row.phase == "Cutting", "MIG manager was asked")
        scene.abort(row)
        scene.asleep = False
    scene.until(row, lambda: row.settled_at is not None, "the node is given back")
    assert row.phase == "Aborted"
    node = scene.node
    assert (node["spec"].get("unschedulable"), "fairlead/cordoned-for" in str(node)) == (None, False)
    assert node["metadata"]["labels"]["nvidia.com/mig.config"] == _OLD
    assert node["status"]["allocatable"][_SMALL] == "7"
