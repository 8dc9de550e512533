"""Rollout forecast: the regressions that its analysis could find, and whether it fits on the cluster's nodes.

The number of requests for that follows from stable's present traffic. Reads counters and nodes, so it is called outside
of transactions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from common.errors import Unavailable
from deployments import mapping
from deployments.domain.analysis.evidence.stable_traffic import Traffic, traffic_of
from deployments.domain.analysis.forecast import plan
from deployments.domain.autoscaling import rollout_capacity
from deployments.domain.policy import Policy
from deployments.domain.rollout import Portion
from deployments.domain.rollout.surge import shared
from deployments.domain.service_state.desired import RevisionState
from deployments.models import Revision
from deployments.reconcile.participants.label_looks import habits_of
from deployments.views.shapes import AnalysisPlan
from integrations.clusters.base import Nodes, Observed, Sample
from placement.capacity_check import Room, Wanted, room_for, room_shared
from placement.packing.assignment import NoRoom, as_named

Look = Callable[[str, str], Sequence[Sample]]
Survey = Callable[[str, str], tuple[Observed, Nodes]]


def analysis_plan(*, policy: Policy, stable: Revision, look: Look, now: datetime) -> AnalysisPlan:
    """Return the forecast of a policy's analysis.

    Args:
        look: returns the counters of a service, by namespace and name; where it cannot, the traffic is unknown.
    """
    service = stable.service
    try:
        samples, problem = look(service.namespace, service.name), ""
    except Unavailable as error:
        samples, problem = (), error.message
    asked = [gate.quality for gate in policy.gates if gate.quality is not None]
    labels = {each.scorer: habits_of(service.pk, each, stable.name, now.timestamp()) for each in asked}
    traffic = replace(traffic_of(samples, stable.name, policy, now.timestamp()), labels=labels)
    return AnalysisPlan(
        alpha=policy.alpha,
        traffic=_traffic_text(traffic, problem),
        requests_per_second=None if traffic.per_second is None else round(traffic.per_second, 3),
        steps=plan(policy, traffic),
    )


def _traffic_text(traffic: Traffic, problem: str) -> str:
    if traffic.per_second is None:
        why = f" ({problem})" if problem else ""
        return (
            f"how many requests clients send is not known{why}; 30 a second and a stable without errors are assumed "
            "for the size of blocks"
        )
    return (
        f"clients sent {traffic.per_second:.3g} requests a second over the last {traffic.seconds:.0f} s; "
        f"{100 * traffic.server_errors:.2g} % of stable's failed, {100 * traffic.client_errors:.2g} % were refused"
    )


def room_plan(*, policy: Policy, stable: Revision, canary: RevisionState, survey: Survey) -> Room:
    """Return whether a rollout from `stable` to `canary` fits at its peak.

    Args:
        survey: returns a service's observation and its cluster's nodes, by namespace and name; where it cannot, the
            result is unknown.
    """
    try:
        seen, nodes = survey(stable.service.namespace, stable.service.name)
    except Unavailable as error:
        seen, nodes = Observed(stable.service.namespace, stable.service.name), Nodes(unknown=error.message)
    now = rollout_capacity.as_seen(mapping.revision_state(stable), seen.revision(stable.name))
    if not policy.surge:
        portions = [(Portion.of(step).short, Portion.of(step).load_percent) for step in policy.steps]
        return room_shared(
            [(what, *shared(now.replicas, percent)) for what, percent in (*portions, ("all", 100))],
            now.replicas,
            Wanted(canary.name, 1, canary.resources),
            now.resources,
            nodes,
        )
    if canary.resources.accelerator and not nodes.unknown:
        return _gpu_room(canary, rollout_capacity.at_full(now, canary), nodes)
    return room_for(
        [
            Wanted(canary.name, rollout_capacity.at_full(now, canary), canary.resources),
            *(
                Wanted(f"{canary.name}'s {kind}", rollout_capacity.companions_at_full(now, canary, kind), its.resources)
                for kind, its in canary.companions.items()
            ),
        ],
        nodes,
    )


def _gpu_room(canary: RevisionState, replicas: int, nodes: Nodes) -> Room:
    """Return whether replicas on GPUs fit; a GPU node is assumed to have the CPUs and memory that its slices need."""
    found = as_named(canary.resources.accelerator, replicas, nodes.gpus, arrangement=canary.arrangement)
    if isinstance(found, NoRoom):
        plan = f"; {found.plan.why}" if found.plan is not None else ""
        return Room(False, replicas, 0, f"it does not fit: {found.why}{plan}")
    return Room(True, replicas, replicas, f"it fits: {found.why}")
