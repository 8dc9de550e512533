"""Commands on repartitions: propose, approve, decline, abort.

No node is changed here; the sweep does that (`gpus.reconcile`). The current nodes are read before, with no transaction
open (`services.inventory.cluster_nodes`).
"""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from clusters.models import Cluster
from clusters.services.connection import file_of
from common.errors import Conflict, InvalidInput
from common.identifiers import check_comment
from events.domain.kinds import Kind
from gpus.models import Repartition
from gpus.reconcile.repartition_change import Change, cut_json, event_add, plan_of, repartition_changing, state_of
from gpus.selectors.repartitions import repartition_get
from gpus.services.repartition_proposal import Lack, RepartitionOrder, lack_of
from integrations.clusters.base import NodeGpus, Nodes
from placement.mig.manager_file import config_name
from placement.repartition import machine
from placement.repartition.machine import Phase
from placement.repartition.proposal import objection
from placement.slices.demand import demand_json, stored_demand
from placement.slices.offers import mig_nodes


def repartition_propose(
    *, cluster: Cluster, order: RepartitionOrder, nodes: Nodes, actor: str, now: datetime
) -> Repartition:
    """Store the layout that places the most of the demand, for approval.

    It replaces an earlier proposal for the same node; an equal proposal is returned as it is.

    Raises:
        InvalidInput, NotFound: the demand is given wrongly, or names what does not exist.
        Conflict: nodes are unknown, the demand fits already, no layout helps, or the node is being repartitioned.
    """
    lack = lack_of(cluster=cluster, order=order, nodes=_known(cluster, nodes))
    label = next(each.config for each in nodes.gpus if each.node == lack.plan.node)
    with transaction.atomic():
        earlier = _make_way(cluster, lack, now)
        if earlier is not None:
            return earlier
        row = _stored(cluster, lack, label, actor, now)
        reported = f"{actor} proposed repartition {row.pk} for {row.wanted}: {row.why}"
        event_add(cluster.pk, Kind.REPARTITION_PROPOSED, reported, now)
        audit_record(actor=actor, action="repartition.propose", target=_target(row), now=now, after=_shown(row))
    return row


def repartition_approve(
    *, cluster: str, repartition_id: int, nodes: Nodes, reason: str, actor: str, now: datetime
) -> Repartition:
    """Approve a proposal; one that no longer matches its node becomes Outdated.

    Raises:
        NotFound: the cluster has no such repartition.
        InvalidTransition: it is no longer a proposal.
        Conflict: the cluster file does not allow it, or the node has changed.
    """
    check_comment(reason)
    row = repartition_get(cluster=cluster, repartition_id=repartition_id)
    refuse_where_not_allowed(row.cluster)
    why = _objection(row, _known(row.cluster, nodes))
    with repartition_changing(row.pk, now=now) as change:
        if why and state_of(change.row).phase is Phase.PROPOSED:
            change.move(machine.outdate(state_of(change.row), why, now))
        else:
            change.move(machine.approve(state_of(change.row), now), reported=_said(change, "approved", actor, reason))
            _decided(change, "approve", actor, reason)
    if why:
        raise Conflict(f"repartition {row.pk} of node {row.node} is outdated, for {why}; propose it again")
    return change.row


def repartition_decline(*, cluster: str, repartition_id: int, reason: str, actor: str, now: datetime) -> Repartition:
    """Decline a proposal, with a reason.

    Raises:
        NotFound: the cluster has no such repartition.
        InvalidInput: the reason is missing.
        InvalidTransition: it is no longer a proposal.
    """
    check_comment(reason)
    if not reason.strip():
        raise InvalidInput("reason is empty; say why the repartition is declined", field="reason")
    row = repartition_get(cluster=cluster, repartition_id=repartition_id)
    with repartition_changing(row.pk, now=now) as change:
        change.move(machine.decline(state_of(change.row), now), reported=_said(change, "declined", actor, reason))
        _decided(change, "decline", actor, reason)
    return change.row


def repartition_abort(*, cluster: str, repartition_id: int, reason: str, actor: str, now: datetime) -> Repartition:
    """Abort a running repartition; the node returns to its earlier layout and accepts pods again.

    Raises:
        NotFound: the cluster has no such repartition.
        InvalidTransition: nothing is under way.
    """
    check_comment(reason)
    row = repartition_get(cluster=cluster, repartition_id=repartition_id)
    with repartition_changing(row.pk, now=now) as change:
        before = change.row.phase
        change.move(machine.abort(state_of(change.row), now), reported=_said(change, "aborted", actor, reason))
        change.row.aborted_at, change.row.aborted_by, change.row.abort_reason = now, actor, reason
        audit_record(
            actor=actor,
            action="repartition.abort",
            target=_target(change.row),
            now=now,
            before={"phase": before},
            after={"phase": change.row.phase},
            detail={"reason": reason},
        )
    return change.row


def refuse_where_not_allowed(cluster: Cluster) -> None:
    """Raise Conflict where the cluster file does not allow repartitioning of nodes."""
    file = file_of(cluster)
    if file is None or file.options.repartition is None:
        raise Conflict(
            f"the file of cluster {cluster} does not let its nodes be cut; apply it with `repartition: {{}}`, bind the "
            "roles that `fairlead clusters check` then names, and let MIG manager read what is written for it"
        )


def _known(cluster: Cluster, nodes: Nodes) -> tuple[NodeGpus, ...]:
    if nodes.unknown:
        raise Conflict(f"nothing is known of the nodes of cluster {cluster}: {nodes.unknown}")
    return nodes.gpus


def _objection(row: Repartition, nodes: tuple[NodeGpus, ...]) -> str:
    return objection(plan_of(row), [stored_demand(each) for each in row.missing], mig_nodes(nodes))


def _make_way(cluster: Cluster, lack: Lack, now: datetime) -> Repartition | None:
    """Retire an earlier proposal for the node; returns it where it is equal."""
    plan = lack.plan
    earlier = Repartition.objects.select_for_update().filter(cluster=cluster, node=plan.node, settled_at=None).first()
    if earlier is None:
        return None
    if Phase(earlier.phase) is not Phase.PROPOSED:
        raise Conflict(
            f"repartition {earlier.pk} of node {earlier.node} is {earlier.phase}; wait for its end, or abort it first"
        )
    if (plan_of(earlier), earlier.wanted) == (plan, lack.wanted):
        return earlier
    with repartition_changing(earlier.pk, now=now) as change:
        change.move(machine.outdate(state_of(change.row), "another one was proposed for the node", now))
    return None


def _stored(cluster: Cluster, lack: Lack, label: str, actor: str, now: datetime) -> Repartition:
    plan = lack.plan
    return Repartition.objects.create(
        cluster=cluster,
        node=plan.node,
        product=plan.product,
        before=cut_json(plan.before),
        after=cut_json(plan.after),
        leaving=list(plan.leaving),
        wanted=lack.wanted,
        missing=[demand_json(each) for each in lack.missing],
        served=plan.served,
        why=plan.why,
        phase=Phase.PROPOSED,
        since=now,
        message="waits for somebody to approve it",
        config=config_name(plan.after),
        config_before=label or config_name(plan.before),
        proposed_at=now,
        proposed_by=actor,
    )


def _decided(change: Change, verb: str, actor: str, reason: str) -> None:
    row = change.row
    row.decided_at, row.decided_by, row.decision_reason = change.now, actor, reason
    audit_record(
        actor=actor,
        action=f"repartition.{verb}",
        target=_target(row),
        now=change.now,
        before={"phase": Phase.PROPOSED},
        after={"phase": row.phase},
        detail={"reason": reason},
    )


def _said(change: Change, verb: str, actor: str, reason: str) -> str:
    return f"{actor} {verb} repartition {change.row.pk} of node {change.row.node}" + (f": {reason}" if reason else "")


def _target(row: Repartition) -> str:
    return f"clusters/{row.cluster.name}/repartitions/{row.pk}"


def _shown(row: Repartition) -> dict[str, object]:
    return {"node": row.node, "wanted": row.wanted, "before": row.before, "after": row.after, "leaving": row.leaving}
