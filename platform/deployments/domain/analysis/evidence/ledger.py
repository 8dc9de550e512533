"""Evidence ledger of one attempt of a rollout, carried from tick to tick and from step to step. Pure.

It is kept in the row of the step's totals and written with them, so that every request counts exactly once: a tick that
crashes before the write leaves both as they were, and the next tick repeats it. A new step continues the evidence of
the one before; a retry starts from none. What is in the open block when a step ends belongs to no block.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deployments.domain.analysis.criterion import Question, Stakes
from deployments.domain.analysis.evidence import blocks, eprocess, label_watch
from deployments.domain.analysis.evidence.blocks import Mark, Tally
from deployments.domain.analysis.evidence.eprocess import Wealth
from deployments.domain.analysis.evidence.external_samples import Looks, looks_json, stored_looks
from deployments.domain.analysis.evidence.label_watch import LabelBlock, Watch
from deployments.domain.analysis.measurements.metrics import stakes_of
from deployments.domain.analysis.measurements.quality import AnswerQuality
from deployments.domain.policy import Metric, Quality


@dataclass(frozen=True, slots=True)
class Ledger:
    """The open block, the capital of each measurement by name, and the step's samples of the policy's own metrics.

    Attributes:
        labels: the labelled answers watched, by scorer.
    """

    mark: Mark
    wealth: Mapping[str, Wealth] = field(default_factory=dict)
    looks: Mapping[str, Looks] = field(default_factory=dict)
    labels: Mapping[str, Watch] = field(default_factory=dict)

    def log_capital(self, metric: str) -> float:
        """Return the evidence against the canary in one measurement, 0 before its first block."""
        found = self.wealth.get(metric)
        return 0.0 if found is None else float(eprocess.log_capital(found))

    def run_blocks(self, metric: str) -> float:
        """Return how many blocks of a run count as one in one measurement, 1 or more."""
        found = self.wealth.get(metric)
        return 1.0 if found is None else float(eprocess.run_blocks(found))


def begin(at: float, before: Ledger | None = None) -> Ledger:
    """Return the ledger of a step that begins now; its sums start at 0."""
    if before is None:
        return Ledger(Mark(at))
    labels = {scorer: label_watch.begin(at, watch) for scorer, watch in before.labels.items()}
    return Ledger(Mark(at), before.wealth, labels=labels)


def carry_on(ledger: Ledger, questions: Iterable[Question], canary: Tally, stable: Tally, at: float) -> Ledger:
    """Return the ledger after a tick.

    Args:
        canary, stable: the step's sums until now.
    """
    block = blocks.close(ledger.mark, canary, stable, at)
    if block is None:
        return ledger
    wealth = dict(ledger.wealth)
    for question in questions:
        stakes = question.stakes(block)
        if stakes is None:
            continue
        wealth[question.metric] = _bet(wealth.get(question.metric), stakes)
    return replace(ledger, mark=Mark(at, canary, stable), wealth=wealth)


def take_looks(ledger: Ledger, metrics: Iterable[Metric], after: Mapping[str, Looks]) -> Ledger:
    """Return the ledger after samples of the metrics; metrics without a new sample change nothing."""
    wealth = dict(ledger.wealth)
    for metric in metrics:
        stakes = stakes_of(metric, ledger.looks.get(metric.name), after[metric.name])
        if stakes is not None:
            wealth[metric.name] = _bet(wealth.get(metric.name), stakes)
    return replace(ledger, wealth=wealth, looks=after)


def take_labels(ledger: Ledger, quality: Quality, watch: Watch, block: LabelBlock | None) -> Ledger:
    """Return the ledger after a look at labelled answers, with the block that it closed."""
    wealth = dict(ledger.wealth)
    scale = 1.0 if watch.habits is None else watch.habits.scale
    for value in watch.values if block is not None else ():
        question = AnswerQuality(quality, value)
        stakes = None if block is None else question.stakes_of(block, scale)
        if stakes is not None:
            wealth[question.metric] = _bet(wealth.get(question.metric), stakes)
    return replace(ledger, wealth=wealth, labels={**ledger.labels, quality.scorer: watch})


def _bet(before: Wealth | None, stakes: Stakes) -> Wealth:
    if before is None or before.logs.shape[-1] != len(stakes.factors) + 1:
        before = eprocess.fresh(len(stakes.factors))
    return eprocess.bet(before, stakes.factors, stakes.value)


def ledger_json(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as JSON, which `stored_ledger` reads back."""
    return {
        "mark": blocks.mark_json(ledger.mark),
        "wealth": {metric: eprocess.wealth_json(wealth) for metric, wealth in ledger.wealth.items()},
        "looks": looks_json(ledger.looks),
        **(
            {"labels": {scorer: label_watch.watch_json(watch) for scorer, watch in ledger.labels.items()}}
            if ledger.labels
            else {}
        ),
    }


def stored_ledger(value: Mapping[str, Any]) -> Ledger | None:
    """Return the ledger from the JSON of `ledger_json`; None from a row without one."""
    if not value:
        return None
    wealth = {metric: eprocess.stored_wealth(fields) for metric, fields in value["wealth"].items()}
    labels = {scorer: label_watch.stored_watch(fields) for scorer, fields in value.get("labels", {}).items()}
    return Ledger(blocks.stored_mark(value["mark"]), wealth, stored_looks(value.get("looks", {})), labels)
