"""Plans of cluster files: what applying one would do, made once; the change carries out the same plan."""

from dataclasses import dataclass
from datetime import datetime

from clusters.models import Cluster
from clusters.services.clusters import cluster_apply, cluster_carry_out, cluster_planned
from common.files.plans import Outcome, Planned


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What applying a cluster file would do, as plans of service files say it; a cluster itself has no rollout.

    Attributes:
        before, after: the files; None without one.
        patched: the effect of patches on an example, as a unified diff; empty without patches.
        untried: why the cluster did not check them, in a sentence; empty where it did, or need not.
    """

    outcome: Outcome
    message: str
    before: object
    after: object
    patched: str = ""
    untried: str = ""
    contract: None = None
    analysis: None = None
    room: None = None
    warnings: tuple[()] = ()


def cluster_plan(
    *, document: object, name: str | None, actor: str, now: datetime
) -> Planned[ClusterPlan, tuple[Cluster, bool]]:
    """Return the plan of `cluster_apply`, without a write; raises what that raises."""
    change = cluster_planned(document=document, name=name, now=now)
    row, before = change.row, change.before
    if before is None:
        plan = ClusterPlan(Outcome.CREATED, f"cluster {row.name} is new", None, row.document)
    elif not change.changed:
        plan = ClusterPlan(Outcome.UNCHANGED, f"cluster {row.name} is as its file says", before, row.document)
    else:
        message = f"cluster {row.name} changes, and what runs there follows with the next turn of the reconciler"
        plan = ClusterPlan(Outcome.CHANGED, message, before, row.document)

    def carry_out() -> tuple[Cluster, bool]:
        is_done = cluster_carry_out(change, actor=actor, now=now)
        return (row, before is None) if is_done else cluster_apply(document=document, name=name, actor=actor, now=now)

    return Planned(plan, carry_out)
