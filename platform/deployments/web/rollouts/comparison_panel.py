"""Comparison panel: how a shadow's or a replay's answers differ from stable's, for pages."""

from dataclasses import dataclass

from deployments.domain.comparison.summary import Summary
from deployments.domain.comparison.worst_examples import Worst
from deployments.selectors import ComparisonView, RolloutView, comparison_newest
from deployments.web.rollouts.charts import OutputChart, Scale, ShownTensor, output_charts, scale_of, tensors_of


@dataclass(frozen=True, slots=True)
class WorstShown:
    """A stored request and its tensors as text."""

    kept: Worst
    tensors: list[ShownTensor]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The template's context.

    Attributes:
        uncompared: a text about pairs that were not compared; empty without any.
        view, step: of a rollout's step, which counts from 1; None and 0 of a replay.
    """

    summary: Summary
    scale: Scale | None
    outputs: list[OutputChart]
    worst: list[WorstShown]
    uncompared: str
    view: ComparisonView | None = None
    step: int = 0


def comparison_of(rollout: RolloutView | None) -> Comparison | None:
    """Return the newest comparison of a rollout; None without one."""
    if rollout is None or not any((step.analysis or {}).get("comparison") for step in rollout.steps):
        return None
    view = comparison_newest(rollout_id=rollout.id)
    if view is None:
        return None
    return compared(view.summary, view)


def compared(summary: Summary, view: ComparisonView | None = None) -> Comparison:
    """Return the panel of a comparison; `view` is its rollout's step, None for a replay."""
    return Comparison(
        summary,
        scale_of(summary),
        output_charts(summary),
        [WorstShown(each, tensors_of(each.inputs, each.stable, each.shadow)) for each in summary.worst],
        _uncompared(summary),
        view,
        0 if view is None else view.step_index + 1,
    )


def _uncompared(summary: Summary) -> str:
    parts = []
    if count := sum(summary.outcomes.get(name, 0) for name in ("StableFailed", "BothFailed")):
        parts.append(f"{count} without an answer of stable's to compare with")
    if count := summary.outcomes.get("NothingAsked", 0):
        parts.append(f"{count} of whose outputs the policy compares none")
    if summary.strangers:
        parts.append(f"{summary.strangers} whose sides were not sent the same request")
    if summary.unreadable:
        parts.append(f"{summary.unreadable} that could not be read ({summary.unreadable_message})")
    return f"Not compared: {'; '.join(parts)}." if parts else ""
