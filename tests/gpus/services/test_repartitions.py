"""Repartitions as people see to them."""

from dataclasses import replace
from typing import Any

import pytest

from accounts.models import AuditEntry
from clusters.models import Cluster
from clusters.services.clusters import cluster_delete
from common.errors import Conflict, FairleadError, InvalidInput, InvalidTransition, NotFound
from events.models import Event
from gpus.models import Repartition
from gpus.selectors.repartitions import repartitions_open
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_abort, repartition_decline, repartition_propose
from integrations.clusters.base import GpuPod, NodeGpus, Nodes
from registry.models import ModelVersion
from tests.deployments._support.accelerators import apply, measure, name_image, see
from tests.deployments._support.gpu_nodes import LARGE, SMALL, WHOLE
from tests.deployments._support.platform import Platform
from tests.deployments._support.repartitions import approve, propose
from tests.scenes import GPU_NODE

CUT = [[["1g.10gb", 4], ["3g.40gb", 1]]]


def with_pod(node: NodeGpus, name: str = "default/other-1", service: str = "default/other") -> NodeGpus:
    return replace(node, pods=(*node.pods, GpuPod(name, service, SMALL, 1)))


def told(kind: str) -> list[str]:
    return list(Event.objects.filter(cluster__name="local", kind=kind).values_list("message", flat=True))


def test_a_proposal_says_what_is_cut_what_leaves_and_for_what(allowed: Platform) -> None:
    row = propose(allowed, with_pod(GPU_NODE))
    assert (row.node, row.phase, row.wanted, row.served) == ("gpu-1", "Proposed", "1 x 3g.40gb", 1)
    row.refresh_from_db()
    assert (row.before, row.after, row.leaving) == ([[["1g.10gb", 7]]], CUT, ["default/other-1"])
    assert (row.config[:9], row.config_before) == ("fairlead-", "all-1g.10gb")
    assert told("RepartitionProposed") == [f"alice proposed repartition {row.pk} for 1 x 3g.40gb: {row.why}"]
    entry = AuditEntry.objects.get(action="repartition.propose")
    assert (entry.target, entry.after["leaving"]) == (f"clusters/local/repartitions/{row.pk}", ["default/other-1"])


def test_a_node_without_the_label_goes_back_to_what_it_was_by_a_configuration_of_ours(allowed: Platform) -> None:
    row = propose(allowed, replace(GPU_NODE, config=""))
    assert row.config_before.startswith("fairlead-")
    assert row.config_before != row.config


def test_the_same_again_is_the_same_and_another_takes_its_place(allowed: Platform) -> None:
    first = propose(allowed)
    assert propose(allowed).pk == first.pk
    second = propose(allowed, demands=("2 x 3g.40gb",))
    first.refresh_from_db()
    assert (first.phase, first.message) == ("Outdated", "another one was proposed for the node")
    assert [each.pk for each in repartitions_open(cluster=second.cluster)] == [second.pk]


@pytest.mark.parametrize(
    ("order", "told"),
    [
        pytest.param({}, "say for what", id="nothing"),
        pytest.param({"demands": ("3g.40gb",), "service": "digits"}, "no two of them", id="two ways"),
        pytest.param({"demands": ("3g.40gb", "1 x 3g.40gb")}, "says the same twice", id="twice"),
        pytest.param({"demands": ("1g.10gb",)}, "there are free slices for all of it", id="room already"),
        pytest.param({"demands": ("9 x 7g.80gb",)}, None, id="as much as helps"),
        pytest.param({"demands": ("1 x 90Gi",)}, "no cut of one node makes slices for 1 of 1 x 90Gi", id="no cut"),
        pytest.param({"service": "default/digits"}, "asks for no GPU", id="a service without a GPU"),
        pytest.param({"service": "default/none"}, "no service default/none", id="no such service"),
    ],
)
def test_what_no_cut_is_for_is_refused(allowed: Platform, order: dict[str, Any], told: str | None) -> None:
    if told is None:
        assert propose(allowed, **order).served == 1
        return
    with pytest.raises(FairleadError, match=told):
        repartition_propose(
            cluster=Cluster.objects.get(),
            order=RepartitionOrder(**order),
            nodes=Nodes(gpus=(GPU_NODE,), unknown=""),
            actor="alice",
            now=allowed.clock(),
        )
    assert not Repartition.objects.exists()


def test_nothing_is_proposed_where_nothing_is_known(allowed: Platform) -> None:
    with pytest.raises(Conflict, match="nothing is known of the nodes of cluster local: no role"):
        propose(allowed, unknown="no role")


def test_room_is_made_for_a_rollout_of_a_service(allowed: Platform) -> None:
    see(allowed, GPU_NODE)
    apply(allowed, **{SMALL: 1})
    allowed.until(lambda: allowed.view().stable_revision == "digits-00002")
    with pytest.raises(Conflict, match="has room for digits version 1 as the nodes are cut"):
        propose(allowed, service="default/digits")
    measure(5 << 30)
    apply(allowed, **{WHOLE: "auto"})
    allowed.version(2)
    ModelVersion.objects.filter(number=2).update(profile={"memory_bytes": 20 << 30})
    row = propose(allowed, service="digits", version="2")
    assert (row.wanted, row.after) == ("digits version 2 of service default/digits", CUT)
    assert row.missing[0]["memory_bytes"] == int(20.5 * (1 << 30) * 1.2)


def test_room_is_made_for_a_file_that_was_refused(allowed: Platform) -> None:
    document = allowed.document(policy=None, replicas=2)
    document["metadata"]["name"] = "larger"
    document["spec"]["predictor"]["model"]["resources"] = {"limits": {LARGE: 1}}
    row = propose(allowed, file=document)
    assert (row.wanted, row.after) == ("digits version 1 of service default/larger", [[["3g.40gb", 2]]])


def test_an_approval_begins_it_and_says_who_and_why(allowed: Platform) -> None:
    row = approve(allowed, propose(allowed), reason="the rollout is due")
    assert (row.phase, row.decided_by, row.decision_reason) == ("Draining", "bob", "the rollout is due")
    assert told("RepartitionApproved") == [f"bob approved repartition {row.pk} of node gpu-1: the rollout is due"]
    assert AuditEntry.objects.get(action="repartition.approve").actor == "bob"
    with pytest.raises(InvalidTransition, match="is Draining; only one that is proposed can be approved"):
        approve(allowed, row)
    with pytest.raises(Conflict, match=f"repartition {row.pk} of node gpu-1 is Draining; wait for its end"):
        propose(allowed, demands=("2 x 3g.40gb",))


def test_what_the_node_is_no_longer_right_for_is_not_carried_out(allowed: Platform) -> None:
    row = propose(allowed)
    with pytest.raises(Conflict, match=r"is outdated, for the GPU pod default/other-1 came to gpu-1 since; propose"):
        approve(allowed, row, with_pod(GPU_NODE))
    row.refresh_from_db()
    assert (row.phase, row.decided_by) == ("Outdated", "")
    assert row.settled_at is not None
    assert told("RepartitionOutdated")
    assert propose(allowed, with_pod(GPU_NODE)).pk != row.pk


def test_nothing_is_approved_where_the_clusters_file_does_not_allow_it(allowed: Platform) -> None:
    row = propose(allowed)
    name_image("fairlead/serving-runtime:test-cuda")
    with pytest.raises(Conflict, match="does not let its nodes be cut; apply it with"):
        approve(allowed, row)
    row.refresh_from_db()
    assert row.phase == "Proposed"


def test_a_proposal_is_declined_for_a_reason(allowed: Platform) -> None:
    row = propose(allowed)
    wish: dict[str, Any] = {"cluster": "local", "repartition_id": row.pk, "actor": "bob", "now": allowed.clock()}
    with pytest.raises(InvalidInput, match="say why the repartition is declined"):
        repartition_decline(**wish, reason=" ")
    row = repartition_decline(**wish, reason="not this week")
    assert (row.phase, row.decision_reason) == ("Declined", "not this week")
    assert row.settled_at == allowed.clock()
    assert told("RepartitionDeclined") == [f"bob declined repartition {row.pk} of node gpu-1: not this week"]
    with pytest.raises(InvalidTransition, match="there is nothing to abort"):
        repartition_abort(**wish, reason="")
    with pytest.raises(NotFound, match="cluster local has no repartition 999"):
        repartition_decline(**{**wish, "repartition_id": 999}, reason="x")


def test_what_is_under_way_is_aborted_and_keeps_its_cluster(allowed: Platform) -> None:
    row = approve(allowed, propose(allowed))
    Cluster.objects.update(name="gpus")
    Cluster.objects.get().services.all().delete()
    with pytest.raises(
        Conflict, match=r"node gpu-1 of cluster 'gpus' is being repartitioned \(Draining\); abort repartition"
    ):
        cluster_delete(name="gpus", actor="bob", now=allowed.clock())
    row = repartition_abort(cluster="gpus", repartition_id=row.pk, reason="too busy", actor="bob", now=allowed.clock())
    assert (row.phase, row.aborted_by, row.abort_reason) == ("Aborted", "bob", "too busy")
    assert row.settled_at is None  # the node is still to be given back
    assert AuditEntry.objects.get(action="repartition.abort").detail == {"reason": "too busy"}
