"""Comparisons of a shadow's answers with stable's, by rollout."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from common.errors import NotFound
from deployments.domain.analysis.gate import alpha_each
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.stored import stored_report
from deployments.domain.comparison.summary import Summary, summary_of
from deployments.domain.policy import stored_policy
from deployments.models import ComparisonRun, Rollout


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The comparison of one step.

    Attributes:
        stable_alone, shadow_alone: requests with only one side recorded, including stable's that were not copied.
        compared_at: when records were read last; None before.
    """

    step_index: int
    attempt: int
    started_at: datetime
    compared_at: datetime | None
    stable_alone: int
    shadow_alone: int
    summary: Summary


def comparison_views(*, rollout_id: int) -> list[ComparisonView]:
    """Return the comparisons of the rollout's present attempt, step by step; raises NotFound."""
    rollout = Rollout.objects.filter(pk=rollout_id).first()
    if rollout is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    runs = ComparisonRun.objects.filter(rollout=rollout, attempt=rollout.attempt).defer("waiting")
    return _views(rollout, runs.order_by("step_index"))


def comparison_newest(*, rollout_id: int) -> ComparisonView | None:
    """Return the newest comparison of the rollout's present attempt; None without one."""
    runs = ComparisonRun.objects.filter(rollout=rollout_id, attempt=F("rollout__attempt")).defer("waiting")
    run = runs.select_related("rollout").order_by("-step_index").first()
    return None if run is None else _views(run.rollout, [run])[0]


def _views(rollout: Rollout, runs: Iterable[ComparisonRun]) -> list[ComparisonView]:
    policy = stored_policy(rollout.policy_document)
    alpha, gates = alpha_each(policy), [step.gate for step in policy.steps]
    asked = [(gate.comparison if gate is not None else None) or Terms() for gate in gates]
    return [
        ComparisonView(
            step_index=run.step_index,
            attempt=run.attempt,
            started_at=run.started_at,
            compared_at=run.compared_at,
            stable_alone=run.stable_alone,
            shadow_alone=run.shadow_alone,
            summary=summary_of(report, asked[run.step_index], problem=run.problem, alpha=alpha),
        )
        for run, report in ((run, stored_report(run.report, run.worst)) for run in runs)
    ]
