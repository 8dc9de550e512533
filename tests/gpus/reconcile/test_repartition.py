"""Repartitions as sweeps carry them out, on a node of a fake cluster; the tests are its MIG manager."""

from dataclasses import dataclass, replace

import pytest

from clusters.models import Cluster
from common.errors import Conflict
from events.models import Event
from gpus.models import Repartition
from gpus.reconcile.repartition import repartitions_carry_out
from gpus.services.repartitions import repartition_abort
from integrations.clusters.base import GpuPod, NodeGpus, ObservedNode
from tests.deployments._support.platform import Platform
from tests.deployments._support.repartitions import approve, propose
from tests.scenes import GPU_NODE

SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
_DELAY_S = 60
POD = GpuPod("default/digits-00001-a", "default/digits", SMALL, 1)
STRANGER = GpuPod("team/notebook", "", SMALL, 1)


@dataclass
class Scene:
    """A repartition that was approved, and the node that it is of."""

    platform: Platform
    row: Repartition

    @property
    def node(self) -> ObservedNode:
        return self.platform.cluster.worked_on["gpu-1"]

    def change(self, **gpus: object) -> None:
        self.platform.cluster.worked_on["gpu-1"] = replace(self.node, gpus=replace(self.node.gpus, **gpus))  # type: ignore[arg-type]

    def turn(self, seconds: float = 2.0) -> str:
        """Let a sweep come, and return the phase."""
        self.platform.clock.go_on(seconds)
        repartitions_carry_out(Cluster.objects.get(), self.platform.cluster, self.platform.clock)
        self.row.refresh_from_db()
        return self.row.phase

    def drained(self) -> None:
        """Come to the moment at which MIG manager is asked."""
        self.turn()
        self.turn()
        assert self.turn(_DELAY_S) == "Cutting"

    def events(self) -> list[str]:
        kinds = Event.objects.filter(kind__startswith="Repartition").order_by("seq").values_list("kind", flat=True)
        return [kind.removeprefix("Repartition") for kind in kinds]


@pytest.fixture
def scene(allowed: Platform) -> Scene:
    gpus: NodeGpus = replace(GPU_NODE, pods=(POD,))
    allowed.cluster.worked_on["gpu-1"] = ObservedNode(gpus, False, "", {"all-1g.10gb": []}, _DELAY_S)
    return Scene(allowed, approve(allowed, propose(allowed, gpus), gpus))


def test_a_node_is_emptied_cut_and_given_back(scene: Scene) -> None:
    assert scene.turn() == "Draining"
    assert (scene.node.cordoned, scene.node.gpus.pods, scene.node.gpus.config) == (True, (), "all-1g.10gb")
    assert {"all-1g.10gb", scene.row.config} < {*scene.node.configs}
    scene.turn()
    assert scene.row.message == "waits for the cut to reach MIG manager's file on the node"
    assert scene.turn(_DELAY_S) == "Cutting"
    assert (scene.node.gpus.config, scene.node.gpus.config_state) == (scene.row.config, "pending")
    scene.change(config_state="success", resources={SMALL: 4, LARGE: 1})
    assert scene.turn() == "Done"
    assert not scene.node.cordoned
    assert scene.row.settled_at is None
    scene.turn()
    assert scene.row.settled_at is not None
    assert scene.events() == ["Proposed", "Approved", "Cutting", "Done"]
    assert propose(scene.platform, replace(GPU_NODE, node="gpu-1")).pk != scene.row.pk


def test_a_failure_brings_back_what_was(scene: Scene) -> None:
    scene.drained()
    scene.change(config_state="failed")
    assert scene.turn() == "Reverting"
    assert (scene.node.gpus.config, scene.node.gpus.config_state, scene.node.cordoned) == (
        "all-1g.10gb",
        "pending",
        True,
    )
    scene.change(config_state="success")
    assert scene.turn() == "Aborted"
    assert not scene.node.cordoned
    assert scene.events()[-2:] == ["Reverting", "Aborted"]


@pytest.mark.parametrize("halfway", [False, True], ids=["while it is drained", "while it is cut"])
def test_an_abort_half_way_gives_the_node_back_with_its_old_cut(scene: Scene, halfway: bool) -> None:
    scene.drained() if halfway else scene.turn()
    now = scene.platform.clock()
    repartition_abort(cluster="local", repartition_id=scene.row.pk, reason="", actor="bob", now=now)
    scene.turn()
    if halfway:
        assert scene.node.cordoned
        scene.change(config_state="success")
        scene.turn()
    assert (scene.row.phase, scene.node.cordoned, scene.node.gpus.config) == ("Aborted", False, "all-1g.10gb")
    scene.turn()
    assert scene.row.settled_at is not None


def test_who_cordoned_the_node_before_us_keeps_it_cordoned(scene: Scene) -> None:
    scene.platform.cluster.worked_on["gpu-1"] = replace(scene.node, cordoned=True)
    scene.drained()
    scene.change(config_state="success", resources={SMALL: 4, LARGE: 1})
    assert scene.turn() == "Done"
    assert scene.node.cordoned
    assert scene.row.settled_at is not None


def test_a_stranger_is_never_evicted_and_neither_is_who_only_has_the_label(scene: Scene) -> None:
    liar = GpuPod("team/liar", "team/no-service-of-ours", SMALL, 1)
    scene.change(pods=(POD, STRANGER, liar))
    for _ in range(3):
        assert scene.turn() == "Draining"
    assert scene.node.gpus.pods == (STRANGER, liar)
    assert "the GPU pod team/liar, which is none of a service's, to leave the node" in scene.row.message
    assert scene.turn(seconds=3600.0) == "Aborted"
    assert "team/" not in " ".join(Event.objects.values_list("message", flat=True))  # everybody may read these


def test_what_no_disruption_budget_allows_to_leave_is_told_and_waited_for(scene: Scene) -> None:
    scene.platform.cluster.staying[POD.name] = "it would violate the pod's disruption budget"
    scene.turn()
    assert scene.turn() == "Draining"
    assert scene.row.message == (
        "waits for 1 GPU pod of services to leave the node (it would violate the pod's disruption budget)"
    )
    scene.platform.cluster.staying.clear()
    scene.drained()


def test_a_cluster_that_is_away_or_a_node_that_is_gone_loses_nothing(scene: Scene) -> None:
    scene.drained()
    scene.platform.cluster.away = "it does not answer"
    assert scene.turn() == "Cutting"
    scene.platform.cluster.away = ""
    node = scene.platform.cluster.worked_on.pop("gpu-1")
    assert scene.turn() == "Cutting"
    assert scene.row.message == "the node is gone; it may come back"
    gpus = replace(node.gpus, config_state="success", resources={SMALL: 4, LARGE: 1})
    scene.platform.cluster.worked_on["gpu-1"] = replace(node, gpus=gpus)
    assert scene.turn() == "Done"
    assert not scene.node.cordoned


def test_a_cluster_whose_file_allows_it_no_more_says_so(scene: Scene) -> None:
    def refuse(_name: str) -> ObservedNode:
        raise Conflict("the cluster's file says no `repartition` any more; add it")

    scene.turn()
    scene.platform.cluster.observe_node = refuse  # type: ignore[method-assign]
    assert scene.turn() == "Draining"
    assert scene.row.held == "the cluster's file says no `repartition` any more; add it"
