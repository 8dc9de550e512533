"""The part of the service's page that shows how a shadow's answers differ from stable's."""

from dataclasses import dataclass

from deployments.charts import OutputChart, Scale, ShownTensor, output_charts, scale_of, tensors_of
from deployments.comparison.worst import Worst
from deployments.selectors import ComparisonView, RolloutView, comparison_newest


@dataclass(frozen=True, slots=True)
class WorstShown:
    """A kept request and its tensors in words."""

    kept: Worst
    tensors: list[ShownTensor]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the template needs; `step` counts from 1, `uncompared` tells of pairs that were not compared."""

    view: ComparisonView
    step: int
    scale: Scale | None
    outputs: list[OutputChart]
    worst: list[WorstShown]
    uncompared: str


def comparison_of(rollout: RolloutView | None) -> Comparison | None:
    """Return the newest comparison of a rollout; None where its policy asks for none, or nothing was compared."""
    if rollout is None or not any((step.analysis or {}).get("comparison") for step in rollout.steps):
        return None
    view = comparison_newest(rollout_id=rollout.id)
    if view is None:
        return None
    return Comparison(
        view,
        view.step_index + 1,
        scale_of(view.summary),
        output_charts(view.summary),
        [WorstShown(each, tensors_of(each.inputs, each.stable, each.shadow)) for each in view.summary.worst],
        _uncompared(view),
    )


def _uncompared(view: ComparisonView) -> str:
    summary, parts = view.summary, []
    if count := sum(summary.outcomes.get(name, 0) for name in ("StableFailed", "BothFailed")):
        parts.append(f"{count} without an answer of stable's to compare with")
    if count := summary.outcomes.get("NothingAsked", 0):
        parts.append(f"{count} of whose outputs the policy compares none")
    if summary.strangers:
        parts.append(f"{summary.strangers} whose sides were not sent the same request")
    if summary.unreadable:
        parts.append(f"{summary.unreadable} that could not be read ({summary.unreadable_message})")
    return f"Not compared: {'; '.join(parts)}." if parts else ""
