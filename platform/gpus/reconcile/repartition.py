"""Reconciles approved GPU repartitions: observe the node -> advance -> record -> apply, at every sweep until settled.

The next step follows from stored state alone, so that the next sweep continues after a crash anywhere. Recording comes
before applying, and nothing is recorded where another worker has advanced the repartition meanwhile.
"""

import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from clusters.models import Cluster
from common.errors import FairleadError, NotFound, Unavailable
from deployments.models import InferenceService
from gpus.models import Repartition
from gpus.reconcile.repartition_change import plan_of, repartition_changing, state_of
from integrations.clusters.base import ClusterDriver, DesiredNode, ObservedNode
from placement.inventory import cut_of
from placement.mig.manager_file import configuration
from placement.repartition.machine import Phase, Seen, State, advance, wanted_of
from placement.repartition.proposal import Repartition as Plan

logger = logging.getLogger(__name__)


def repartitions_carry_out(cluster: Cluster, driver: ClusterDriver, clock: Callable[[], datetime]) -> None:
    """Reconcile each repartition of the cluster that is under way, or whose node still has to be returned."""
    for row in Repartition.objects.filter(cluster=cluster, settled_at=None).exclude(phase=Phase.PROPOSED):
        try:
            tick(row, driver, clock)
        except (Unavailable, NotFound) as error:
            logger.warning("repartition %s waits: %s", row.pk, error)
        except FairleadError as error:
            logger.warning("repartition %s cannot go on: %s", row.pk, error)
            Repartition.objects.filter(pk=row.pk).update(held=error.message)


def tick(row: Repartition, driver: ClusterDriver, clock: Callable[[], datetime]) -> None:
    """Advance one repartition by one step; raises what the driver raises, and what was recorded is kept."""
    state, plan, mark = state_of(row), plan_of(row), f"repartition-{row.pk}"
    node = driver.observe_node(row.node)
    services = _services(row.cluster_id)
    seen = None if node is None else _seen(node, plan, state, services, row.held)
    after = advance(state, seen, clock())
    with repartition_changing(row.pk, now=clock()) as change:
        if state_of(change.row) != state:
            return  # another worker was first; the next turn reads its state
        if after != state:
            change.move(after, by_itself=True)
        if after.phase.is_over and (node is None or node.mark != mark):
            change.row.settled_at, change.row.held = change.now, ""
            return
    wanted = wanted_of(after)
    if node is None or wanted is None:
        return
    evicted = tuple(sorted({pod.name for pod in node.gpus.pods if pod.service in services})) if wanted.evicting else ()
    configs = _configs(plan) if after.phase.is_under_way else {}
    held = driver.apply_node(DesiredNode(row.node, mark, wanted.cordoned, evicted, wanted.config or "", configs))
    first = held[0] if held else ""
    Repartition.objects.filter(pk=row.pk).exclude(held=first).update(held=first)


def _seen(node: ObservedNode, plan: Plan, state: State, services: set[str], held: str) -> Seen:
    pods = {pod.name: pod.service in services for pod in node.gpus.pods}
    wanted: Counter[str] = Counter()
    for layout in plan.after:
        wanted.update(dict(layout))
    return Seen(
        gpu_pods=sum(pods.values()),
        strangers=tuple(sorted(name for name, is_ours in pods.items() if not is_ours)),
        config=node.gpus.config,
        config_state=node.gpus.config_state,
        is_cut=Counter(cut_of(node.gpus)) == wanted,
        cordoned=node.cordoned,
        written=all(node.configs.get(name) == entry for name, entry in _configs(plan).items()),
        delay=timedelta(seconds=node.delay_s),
        held="" if state.phase.is_over else held,
    )


def _configs(plan: Plan) -> dict[str, object]:
    """Return the required content of MIG manager's file: the new layout, and the old one where the label names none."""
    return {**configuration(plan.before)["mig-configs"], **configuration(plan.after)["mig-configs"]}


def _services(cluster_id: int) -> set[str]:
    found = InferenceService.objects.filter(cluster=cluster_id).values_list("namespace", "name")
    return {f"{namespace}/{name}" for namespace, name in found}
