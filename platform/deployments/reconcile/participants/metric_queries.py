"""Prometheus queries of a step's metrics. Called by `evidence`, outside of any transaction.

All due queries are sent together; after a crash before the answers are recorded they are sent again, and the sample
counts once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common import durations
from common.errors import Unavailable
from deployments.domain.analysis.evidence import external_samples
from deployments.domain.analysis.evidence.external_samples import Looks
from deployments.domain.policy import Metric, Series, promql
from deployments.domain.policy.series import NotUnderstoodError, limited
from deployments.models import Rollout, RolloutPolicy
from integrations.metrics.prometheus import Answer

Ask = Callable[[Sequence[str]], Sequence[Answer]]

NOT_CONFIGURED = "FAIRLEAD_PROMETHEUS_URL is not set, so no Prometheus answers"


def no_prometheus(_queries: Sequence[str]) -> Sequence[Answer]:
    """Raise Unavailable, for use without a Prometheus."""
    raise Unavailable(NOT_CONFIGURED)


@dataclass(frozen=True, slots=True)
class Side:
    """The side of a query."""

    revision: str
    version: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A rollout's placeholder values; `reads_all_series` where its policy may read all, whatever its metrics say."""

    namespace: str
    service: str
    canary: Side
    stable: Side
    reads_all_series: bool = False

    def query(self, metric: Metric, side: Side) -> str:
        """Return the metric's query for one side; raises NotUnderstoodError where it cannot be limited."""
        values = {
            "namespace": self.namespace,
            "service": self.service,
            "canary": self.canary.revision,
            "stable": self.stable.revision,
            "revision": side.revision,
            "version": str(side.version),
            "interval": durations.render(metric.interval),
        }
        query = promql.fill(metric.query, values)
        own = {"namespace": self.namespace, "service": self.service}
        return query if self.reads_all_series or metric.series is Series.ALL else limited(query, own)


def subject_of(rollout: Rollout) -> Subject:
    """Return the placeholder values of a rollout's queries."""
    canary, stable = (
        Side(revision.name, revision.model_version.number) for revision in (rollout.to_revision, rollout.from_revision)
    )
    reads_all = RolloutPolicy.objects.filter(
        name=rollout.policy_name, all_series_version=rollout.policy_version
    ).exists()
    return Subject(rollout.service.namespace, rollout.service.name, canary, stable, reads_all)


def look_where_due(
    metrics: Sequence[Metric], before: Mapping[str, Looks], subject: Subject, ask: Ask, now: float
) -> dict[str, Looks]:
    """Return the samples after those that are due were taken."""
    after = {
        metric.name: before.get(metric.name, external_samples.begin([metric], now)[metric.name]) for metric in metrics
    }
    due = [metric for metric in metrics if after[metric.name].next_at <= now]
    sides = [(metric, side) for metric in due for side in _sides(metric, subject)]
    if not sides:
        return after
    try:
        answers = _answers(sides, subject, ask)
    except Unavailable as error:
        return after | {
            metric.name: external_samples.miss(metric, after[metric.name], outage=error.message, now=now)
            for metric in due
        }
    for metric in due:
        canary, stable = answers[metric, subject.canary], answers.get((metric, subject.stable), Answer())
        after[metric.name] = external_samples.look(
            metric,
            after[metric.name],
            canary=canary.value,
            stable=stable.value,
            problem=canary.problem or (stable.problem if metric.is_comparison else ""),
            now=now,
        )
    return after


def _answers(sides: Sequence[tuple[Metric, Side]], subject: Subject, ask: Ask) -> dict[tuple[Metric, Side], Answer]:
    """Return the answer of each metric's query for a side; raises Unavailable."""
    answers, queries = {}, {}
    for metric, side in sides:
        try:
            queries[metric, side] = subject.query(metric, side)
        except NotUnderstoodError as error:  # saved before queries were limited
            answers[metric, side] = Answer(
                problem=f"the query {error}, so it cannot be limited to the service's own series; write it another "
                "way, or let an administrator save it with `series: all`"
            )
    if queries:
        answers |= zip(queries, ask(list(queries.values())), strict=True)
    return answers


def _sides(metric: Metric, subject: Subject) -> tuple[Side, ...]:
    return (subject.canary, subject.stable) if promql.is_per_revision(metric.query) else (subject.canary,)
