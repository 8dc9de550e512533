"""Evidence collection for a rollout's present step, as a participant.

A window begins when the gateway confirmed the step's weight and continues, tick after tick, from the totals in its
AnalysisRun. Where metrics cannot be read nothing is counted and nothing is judged; the next tick has the difference.
Evidence carries over from step to step of an attempt, in the same row as the counts, so that both are recorded or
neither.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from django.db.models import Q

from common.errors import Unavailable
from deployments.domain.analysis import points
from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence import ledger, totals
from deployments.domain.analysis.evidence.blocks import tally
from deployments.domain.analysis.evidence.ledger import Ledger
from deployments.domain.analysis.evidence.totals import Totals
from deployments.domain.analysis.gate import Proof, edges_of, evaluate, quantile_key, questions_of, threshold_of
from deployments.domain.analysis.verdict import Finding
from deployments.domain.comparison.report import Compared
from deployments.domain.phases import Phase
from deployments.domain.policy import Gate, Strategy
from deployments.domain.rollout import RolloutState
from deployments.models import AnalysisPoint, AnalysisRun, Rollout
from deployments.reconcile.participants.comparison import COMPARISON
from deployments.reconcile.participants.label_looks import look_at_labels, sought_of, watch_of
from deployments.reconcile.participants.metric_queries import Ask, look_where_due, subject_of
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from integrations.clusters.base import Sample


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one tick.

    Attributes:
        finding: of the present step.
        background: of the analysis in the background.
        runs: the step's run and that in the background with the new counts, not saved yet; empty without counts.
        edges_us: the edges of slow requests, by quantile, as far as stable's requests fix them.
        problem: why metrics could not be read.
    """

    finding: Finding | None = None
    background: Finding | None = None
    runs: tuple[AnalysisRun, ...] = ()
    edges_us: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""


class EvidenceOfStep(Participant[Evidence]):
    """Counts and judges the present step, and the background of all steps."""

    def collect(self, turn: Turn) -> Evidence:
        """Return the evidence for the rollout's present step; empty where no rollout is at a step with its weight."""
        rollout, state = turn.rollout, turn.state
        if rollout is None or state is None or turn.seen is None or state.phase is Phase.PENDING or state.step is None:
            return Evidence()
        scopes, begun = list(_scopes(state)), turn.kept.get(self, {})
        if not begun.keys() >= {scope.step_index for scope in scopes}:
            begun = _begun(rollout, state)
        if not (turn.is_confirmed and state.has_its_portion):
            scopes = [scope for scope in scopes if scope.step_index in begun]
        if not scopes:
            return Evidence()
        try:
            samples = turn.samples()
        except Unavailable as error:
            return Evidence(problem=error.message)
        stable, canary = rollout.from_revision.name, rollout.to_revision.name
        lifetime = totals.lifetime_latency(samples, stable)
        edges = {**edges_of(state.policy, lifetime), **rollout.latency_edges_us}
        compared = turn.found(COMPARISON)
        sides = _Sides(stable, canary, edges, lifetime.total, None if compared is None else compared.result)
        runs, findings = [], {}
        for scope in scopes:
            own, run = scope.of(samples, stable, canary), begun.get(scope.step_index)
            if run is None:
                run, counted = _begin(rollout, state, scope, own, turn.now)
            else:
                run.first_request_at = run.first_request_at and run.first_request_at + turn.unseen
                counted = totals.add(totals.stored_totals(run.totals), own)
                run.totals = totals.totals_json(counted)
            known = _look(run, rollout, scope, turn.outside.ask, turn.now)
            findings[scope.step_index] = _judge(run, state, scope.gate, counted, known, sides=sides, now=turn.now)
            runs.append(run)
        turn.kept[self] = {run.step_index: run for run in runs}
        return Evidence(findings.get(state.step_index), findings.get(None), tuple(runs), edges)

    def record(self, change: Change, found: Evidence) -> None:
        """Save the runs, with a point of their charts where one is due, and the edges of slow requests."""
        row = change.rollout
        if row is None or not found.runs:
            return
        for run in found.runs:
            run_keep(run=run, now=change.now)
        edges = {**found.edges_us, **row.latency_edges_us}
        if edges != row.latency_edges_us:
            row.latency_edges_us = edges
            row.save(update_fields=["latency_edges_us"])
        change.is_changed = True


EVIDENCE = EvidenceOfStep()


def _begun(rollout: Rollout, state: RolloutState) -> dict[int | None, AnalysisRun]:
    """Return the runs of the present step and of the background, by step index."""
    indices = Q(step_index=state.step_index)
    if state.policy.background is not None:
        indices |= Q(step_index=None)
    return {run.step_index: run for run in AnalysisRun.objects.filter(indices, rollout=rollout, attempt=state.attempt)}


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is counted and judged as one.

    Attributes:
        step_index: None in the background.
        is_of_copies: copies of requests count, not clients' requests to the canary's version; else clients'.
    """

    step_index: int | None
    gate: Gate | None
    is_of_copies: bool

    def of(self, samples: Iterable[Sample], stable: str, canary: str) -> list[Sample]:
        """Return its counters."""
        hidden = ("gateway" if self.is_of_copies else "mirror", canary)
        return [
            sample
            for sample in samples
            if sample.revision in (stable, canary) and (sample.source, sample.revision) != hidden
        ]


def _scopes(state: RolloutState) -> Iterator[_Scope]:
    """Yield the scopes to judge at the present step.

    In the background one window covers all steps: of a canary, those in which clients get its answers.
    """
    if state.step is None:
        return
    yield _Scope(state.step_index, state.step.gate, state.is_mirroring)
    if state.policy.background is not None and (not state.is_mirroring or state.policy.strategy is Strategy.SHADOW):
        yield _Scope(None, state.policy.background, state.is_mirroring)


def _begin(
    rollout: Rollout, state: RolloutState, scope: _Scope, samples: Sequence[Sample], now: datetime
) -> tuple[AnalysisRun, Totals]:
    before = None if scope.step_index is None else _before(rollout, state)
    counted = totals.begin(samples, now.timestamp())
    run = AnalysisRun(
        rollout=rollout,
        attempt=state.attempt,
        step_index=scope.step_index,
        weight=0 if scope.step_index is None else state.portion.weight,
        mirror=state.portion.mirror,
        totals=totals.totals_json(counted),
        evidence=ledger.ledger_json(ledger.begin(now.timestamp(), before)),
        started_at=now,
    )
    return run, counted


def _before(rollout: Rollout, state: RolloutState) -> Ledger | None:
    """Return the evidence of the step before in this attempt."""
    runs = AnalysisRun.objects.filter(rollout=rollout, attempt=state.attempt, step_index__lt=state.step_index)
    before = runs.order_by("-step_index").first()
    return None if before is None else ledger.stored_ledger(before.evidence)


def _look(run: AnalysisRun, rollout: Rollout, scope: _Scope, ask: Ask, now: datetime) -> Ledger:
    """Return the run's evidence after the due samples of the gate's own metrics, and the labels that are due.

    While a sample cannot be taken the analysis deadline waits.
    """
    known, gate = ledger.stored_ledger(run.evidence) or ledger.begin(now.timestamp()), scope.gate
    if gate is not None and gate.quality is not None:
        sought = sought_of(rollout, is_paired=scope.is_of_copies)
        known = look_at_labels(known, gate.quality, sought, run.started_at.timestamp(), now.timestamp())
    if gate is None or not gate.metrics:
        return known
    metrics, service = gate.metrics, rollout.service
    after = look_where_due(metrics, known.looks, subject_of(rollout), ask, now.timestamp())
    if run.first_request_at is not None and any(looks.outage for looks in after.values()):
        gap = now - (service.seen_at or now)
        run.first_request_at = min(now, run.first_request_at + gap)
    return ledger.take_looks(known, metrics, after)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both sides, and the edges of slow requests."""

    stable: str
    canary: str
    edges_us: Mapping[str, float]
    stable_answered: int
    compared: Compared | None


def _judge(
    run: AnalysisRun,
    state: RolloutState,
    gate: Gate | None,
    counted: Totals,
    known: Ledger,
    *,
    sides: _Sides,
    now: datetime,
) -> Finding:
    """Update the evidence, evaluate the gate, and put the finding into the run."""
    if run.first_request_at is None and counted.of(sides.canary).requests:
        run.first_request_at = now
    window = Window(
        canary=counted.of(sides.canary),
        stable=counted.of(sides.stable),
        edge_us=None if gate is None else sides.edges_us.get(quantile_key(gate)),
        # In the background nothing is undecided for too long: the rollout's own deadline covers that.
        waited=now - run.first_request_at if run.first_request_at and run.step_index is not None else None,
        stable_answered=sides.stable_answered,
        subject=state.policy.subject,
        compared=sides.compared,
        looks=known.looks,
        labels=watch_of(known, None if gate is None else gate.quality),
        at=now,
        share_percent=run.mirror or run.weight or state.portion.weight,
    )
    if gate is not None:
        limit_us = None if gate.max_slower_than is None else 1000 * gate.max_slower_than.milliseconds
        canary, stable = (tally(counts, window.edge_us, limit_us) for counts in (window.canary, window.stable))
        known = ledger.carry_on(known, questions_of(gate), canary, stable, now.timestamp())
    finding = evaluate(gate, window, Proof(known, threshold_of(state.policy)))
    run.evidence = ledger.ledger_json(known)
    run.verdict, run.message = finding.verdict, finding.message
    run.canary_requests, run.stable_requests = finding.canary_requests, finding.stable_requests
    run.measurements = [asdict(measurement) for measurement in finding.measurements]
    return finding


def run_keep(*, run: AnalysisRun, now: datetime) -> None:
    """Save a run, with a point for its chart where one is due; a run without measurements has none."""
    with_point = bool(run.measurements) and points.is_due(run.started_at, run.pointed_at, now)
    if with_point:
        run.pointed_at = now
    run.save()
    if with_point:
        values = points.values_of(run.measurements)
        AnalysisPoint.objects.create(run=run, at=now, canary_requests=run.canary_requests, values=values)
