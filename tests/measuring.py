"""What an analysis comes to look after look, made by the real gate from counts that a test chooses."""

from dataclasses import asdict
from datetime import timedelta

from deployments import mapping
from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence import ledger
from deployments.domain.analysis.evidence.blocks import tally
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.domain.analysis.gate import Proof, edges_of, evaluate, quantile_key, questions_of, threshold_of
from deployments.models import AnalysisRun, Rollout
from deployments.reconcile.participants.evidence import run_keep
from deployments.reconcile.service_change import changing

EDGES_US = (1000.0, 2000.0, 5000.0, 10_000.0)
LOOK_S = 2.0


def measure(
    row: Rollout, *, looks: int, canary_errors: float, stable_errors: float = 0.002, per_look: int = 12
) -> None:
    """Let the present step's analysis have looked so often, every two seconds until now.

    Args:
        canary_errors, stable_errors: parts of the requests that fail, evenly spread.
        per_look: the canary's requests between two looks; stable gets four times as many.
    """
    with changing(row.service_id, now=row.confirmed_at) as change:
        change.is_changed = True
        run = AnalysisRun.objects.get(rollout=row, attempt=row.attempt, step_index=row.step_index)
        state = mapping.rollout_state(row)
        gate = state.step.gate
        assert gate is not None
        began = row.confirmed_at - timedelta(seconds=LOOK_S * looks)
        run.started_at, run.pointed_at = began, None
        known = _before(row, began.timestamp())
        for look in range(1, looks + 1):
            now = began + timedelta(seconds=LOOK_S * look)
            canary = _counts(per_look * look, canary_errors, slow=0.012)
            stable = _counts(4 * per_look * look, stable_errors, slow=0.008)
            edge = edges_of(state.policy, stable.latency).get(quantile_key(gate))
            window = Window(canary, stable, edge, now - began, stable.requests)
            sides = (tally(counts, edge) for counts in (canary, stable))
            known = ledger.carry_on(known, questions_of(gate), *sides, now.timestamp())
            finding = evaluate(gate, window, Proof(known, threshold_of(state.policy)))
            run.verdict, run.message = finding.verdict, finding.message
            run.canary_requests, run.stable_requests = canary.requests, stable.requests
            run.measurements = [asdict(each) for each in finding.measurements]
            run.evidence = ledger.ledger_json(known)
            run_keep(run=run, now=now)
        change.service.seen_at = row.confirmed_at


def _before(row: Rollout, at: float) -> ledger.Ledger:
    runs = AnalysisRun.objects.filter(rollout=row, attempt=row.attempt, step_index__lt=row.step_index)
    before = runs.order_by("-step_index").first()
    return ledger.begin(at, None if before is None else ledger.stored_ledger(before.evidence))


def _counts(requests: int, errors: float, slow: float) -> Counts:
    late = round(requests * slow)
    latency = Histogram(EDGES_US, (requests - late, 0, late, 0, 0))
    return Counts(requests=requests, server_errors=round(requests * errors), latency=latency)
