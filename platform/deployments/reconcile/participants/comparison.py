"""Answer comparison of a step, as a participant: compares the requests recorded since the last tick.

The exchanges are compared outside of any transaction. The result is written in the tick's, together with the cursor:
after a crash before that, the same exchanges are read again.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from common.encryption import seal_bytes, unseal_bytes
from common.errors import InvalidInput, Unavailable
from deployments.domain.analysis.gate import alpha_each
from deployments.domain.comparison.answers import Answer, compare
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.pairing import Pair, Waiting, alone, join
from deployments.domain.comparison.report import Compared, Report, add, refuse
from deployments.domain.comparison.stored import report_json, stored_report, stored_waiting, waiting_bytes, worst_json
from deployments.domain.comparison.worst_examples import worst_of
from deployments.domain.phases import Phase
from deployments.domain.rollout import RolloutState
from deployments.models import ComparisonRun, Rollout
from deployments.reconcile.participants.taps import TAPS, Taken
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from integrations.clusters.base import Exchange
from integrations.v2 import tensors

logger = logging.getLogger(__name__)

PURPOSE = "requests that wait to be compared"
_BLAMES_REQUEST = frozenset({"INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED"})
_NO_SUCH_VERSION = "NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Carried:
    """The result of a tick's exchanges: the step's row, not saved yet, and the input of the analysis."""

    run: ComparisonRun
    result: Compared


class Comparison(Participant[Carried | None]):
    """Compares the answers to copied requests at the present step."""

    def collect(self, turn: Turn) -> Carried | None:
        """Return the comparison of the present step with the exchanges read; None without one."""
        if turn.rollout is None or turn.state is None:
            return None
        return carry_on(turn.rollout, turn.state, turn.found(TAPS), confirmed=turn.is_confirmed, now=turn.now)

    def record(self, change: Change, found: Carried | None) -> None:  # noqa: ARG002 - the row is not the service's
        """Write the result."""
        if found is not None:
            found.run.save()


COMPARISON = Comparison()


def carry_on(rollout: Rollout, state: RolloutState, taken: Taken, *, confirmed: bool, now: datetime) -> Carried | None:
    """Return the comparison of the rollout's present step with the exchanges read; None where none is compared.

    Args:
        confirmed: the gateway copies as desired; a step's comparison begins with that.
    """
    if state.comparison is None or state.phase is Phase.PENDING:
        return None
    place = {"rollout": rollout, "attempt": state.attempt, "step_index": state.step_index}
    run = ComparisonRun.objects.filter(**place).first()
    if run is None:
        if not (confirmed and state.has_its_portion):
            return None
        run = ComparisonRun(**place, started_at=now)
    report = _report(run, rollout, state.comparison, taken, now)
    return Carried(run, Compared(report, alpha_each(state.policy), taken.problem))


def _report(run: ComparisonRun, rollout: Rollout, terms: Terms, taken: Taken, now: datetime) -> Report:
    """Return the step's report with the exchanges read, and put it into its row."""
    begun = run.started_at.timestamp()
    waiting, pairs = join(
        _waiting(run),
        [exchange for exchange in taken.exchanges if exchange.at >= begun],
        stable=rollout.from_revision.name,
        shadow=rollout.to_revision.name,
    )
    report = stored_report(run.report, run.worst)
    for pair in pairs:
        report = with_pair(report, pair, terms)
    run.report, run.worst, run.problem = report_json(report), worst_json(report), taken.problem
    run.waiting = seal_bytes(waiting_bytes(waiting), purpose=PURPOSE)
    run.stable_alone, run.shadow_alone = alone(waiting)["stable"], alone(waiting)["shadow"]
    run.compared_at = run.compared_at if taken.problem else now
    return report


def _waiting(run: ComparisonRun) -> Waiting:
    if not run.waiting:
        return Waiting(stable_alone=run.stable_alone, shadow_alone=run.shadow_alone)
    try:
        return stored_waiting(unseal_bytes(bytes(run.waiting), purpose=PURPOSE))
    except Unavailable as error:
        logger.warning("%s: the halves that waited are given up: %s", run, error)
        return Waiting(stable_alone=run.stable_alone, shadow_alone=run.shadow_alone)


def with_pair(report: Report, pair: Pair, terms: Terms) -> Report:
    """Return the report with one more pair, compared or not comparable."""
    if pair.shadow.error_code == _NO_SUCH_VERSION != pair.stable.error_code:
        return refuse(report)  # the request names stable's version
    try:
        inputs, copied = tensors.inputs_of(pair.stable.request), tensors.inputs_of(pair.shadow.request)
        stable, shadow = _answer(pair.stable), _answer(pair.shadow)
    except InvalidInput as error:
        return refuse(report, f"request {pair.stable.request_id[:80]}: {error.message}")
    if inputs.keys() != copied.keys() or not all(inputs[name].equals(copied[name]) for name in inputs):
        return refuse(report)
    comparison = compare(inputs, stable, shadow, terms)
    at = datetime.fromtimestamp(pair.stable.at, UTC)
    return add(report, comparison, worst_of(pair.stable.request_id, at, comparison, inputs, (stable, shadow)))


def _answer(exchange: Exchange) -> Answer:
    """Return a side's answer; raises InvalidInput where its outputs cannot be read."""
    if exchange.error_code:
        message = exchange.response.get("error")
        return Answer({}, str(message or exchange.error_code), exchange.error_code in _BLAMES_REQUEST)
    return Answer(tensors.outputs_of(exchange.response))
