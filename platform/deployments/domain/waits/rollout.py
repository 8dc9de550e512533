"""Wait reason of a rollout in progress, for every condition of the state machine. Pure.

The evidence is the reason's own sentence. What would change it follows from the recorded state alone, so it is right at
any moment, also between two observations. Every new code of the machine that is not final needs an entry in the table.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from common import durations
from deployments.domain.phases import Code
from deployments.domain.policy import Gate, OnInconclusive, Then, match_text
from deployments.domain.rollout import Portion, RolloutState
from deployments.domain.waits.wait import Wait, about, moment

_RATE_NEEDS = timedelta(seconds=2)
"""Counts over less time say nothing about the rate of requests."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a rollout's present step so far.

    Attributes:
        requests: of the canary, or copies to the shadow.
        first_request_at, until: between which moments; None before the first.
        more_requests: how many more a verdict needs at least, as the analysis says; None where it does not depend on
            requests.
    """

    requests: int = 0
    first_request_at: datetime | None = None
    until: datetime | None = None
    more_requests: int | None = None

    @property
    def per_second(self) -> float | None:
        """Return the rate of requests; None while unknown."""
        if self.first_request_at is None or self.until is None or self.until - self.first_request_at < _RATE_NEEDS:
            return None
        return self.requests / (self.until - self.first_request_at).total_seconds() or None


@dataclass(frozen=True, slots=True)
class _Situation:
    state: RolloutState
    since: datetime
    counted: Counted

    @property
    def gate(self) -> Gate | None:
        return None if self.state.step is None else self.state.step.gate

    @property
    def subject(self) -> str:
        return self.state.policy.subject


def wait_of_rollout(state: RolloutState, since: datetime, counted: Counted | None) -> Wait | None:
    """Return why the rollout waits; None for one that is over.

    Args:
        since: when its reason's code began.
        counted: None where nothing is counted at its present step.
    """
    if state.phase.is_finished:
        return None
    situation = _Situation(state, since, counted or Counted())
    return Wait(
        condition=state.reason.code.value,
        evidence=state.reason.message,
        sample_size=counted.requests if counted is not None and state.reason.code in _OF_REQUESTS else None,
        changes_when=_CHANGES_WHEN[state.reason.code](situation),
        since=since,
    )


def _canary(at: _Situation) -> str:
    limit = at.state.policy.progress_deadline
    if at.state.waiting_since is None:
        deadline = f"within {durations.render(limit)}"
    else:
        deadline = f"by {moment(at.state.waiting_since + limit)}"
    return f"enough replicas of the {at.subject} become ready; if they are not {deadline}, the rollout is Degraded"


def _gateway(at: _Situation) -> str:
    portion = at.state.portion
    if at.state.is_previewing:
        share = "sends what comes to the preview address to the canary"
    else:
        share = f"{portion.done} to the {at.subject}" if portion else "sends all requests to stable"
    return f"the gateway confirms that it {share}"


def _hold(at: _Situation) -> str:
    state = at.state
    hold = timedelta(0) if state.step is None else state.step.hold
    ends = "the hold is over" if state.confirmed_at is None else f"the hold ends at {moment(state.confirmed_at + hold)}"
    return f"{ends}; then {_next(state)}"


def _traffic(at: _Situation) -> str:
    if at.state.is_previewing:
        who = "somebody sends requests to the preview address"
    elif at.state.portion.match and not at.state.portion.weight:
        who = f"somebody sends requests with {match_text(at.state.portion.match)}"
    else:
        who = "clients send requests to the service"
    gate = at.gate
    return who if gate is None else f"{who}; a verdict needs {_requests(gate.min_requests)} of the {at.subject}"


def _analysis(at: _Situation) -> str:
    gate, counted = at.gate, at.counted
    if gate is None:
        return "the analysis reaches a verdict"
    missing = gate.min_requests - counted.requests if counted.more_requests is None else counted.more_requests
    if missing > 0:
        rate = counted.per_second
        how_long = ""
        if rate is not None:
            how_long = f", {about(timedelta(seconds=math.ceil(missing / rate)))} at the present {rate:.3g} per second"
        more = f"the {at.subject} has had at least {_requests(missing)} more{how_long}"
    else:
        looks = f" and looks at {', '.join(metric.name for metric in gate.metrics)}" if gate.metrics else ""
        more = f"further requests{looks} make the evidence clear"
    if counted.first_request_at is None:
        return more
    deadline = moment(counted.first_request_at + gate.deadline)
    return f"{more}; undecided at {deadline}, {_when_inconclusive(at.state)}"


def _when_inconclusive(state: RolloutState) -> str:
    if state.policy.on_inconclusive is OnInconclusive.ABORT:
        return "the rollout is Aborted"
    return "the rollout pauses for a person"


def _promoting(at: _Situation) -> str:
    if at.state.has_its_portion:
        return _gateway(at)
    return f"the next look at the cluster lets the gateway be asked for {at.state.where}"


def _person(at: _Situation) -> str:
    return f"somebody promotes it ({_after(at.state)}) or aborts it"


def _approval(at: _Situation) -> str:
    rule = at.state.approval
    people = "people approve it" if rule is None or rule.approvals > 1 else "somebody approves it"
    count = f"{rule.approvals} different " if rule is not None and rule.approvals > 1 else ""
    goes_on = f"step 1 of {len(at.state.policy.steps)} begins" if at.state.approval_step is None else _after(at.state)
    return f"{count}{people} ({goes_on}), or somebody rejects or aborts it"


def _next(state: RolloutState) -> str:
    """Return the text of what follows the present step."""
    if state.approval is not None:
        return "it waits for people to approve it"
    return "it waits for somebody to promote it" if state.pauses else _after(state)


def _after(state: RolloutState) -> str:
    steps, index = state.policy.steps, state.step_index + 1
    if index < len(steps):
        return f"step {index + 1} of {len(steps)} with {Portion.of(steps[index]).short} follows"
    return "the shadow ends" if state.policy.then is Then.END else "all requests go to the new revision"


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


_CHANGES_WHEN: Mapping[Code, Callable[[_Situation], str]] = {
    Code.CANARY_STARTING: _canary,
    Code.CANARY_NOT_READY: _canary,
    Code.WAITING_FOR_GATEWAY: _gateway,
    Code.HOLDING: _hold,
    Code.NO_TRAFFIC: _traffic,
    Code.ANALYSIS_RUNNING: _analysis,
    Code.METRICS_UNAVAILABLE: lambda _: (
        "the counters can be read again; until then nothing is judged and nothing moves"
    ),
    Code.CLUSTER_UNAVAILABLE: lambda _: "the cluster can be read again; until then nothing moves",
    Code.PROMOTING: _promoting,
    Code.WAITING_FOR_WEBHOOK: lambda at: (
        f"the webhook says go, or says no, which ends the rollout; it is called again, and undecided at its deadline "
        f"{_when_inconclusive(at.state)}"
    ),
    Code.AWAITING_APPROVAL: _approval,
    Code.PAUSED_BY_STEP: _person,
    Code.PAUSED_BY_WEBHOOK: lambda _: "somebody promotes it (it goes on without that answer) or aborts it",
    Code.PAUSED_INCONCLUSIVE: _person,
    Code.PAUSED_BY_DEADLINE: _person,
}
_OF_REQUESTS = frozenset(
    {
        Code.HOLDING,
        Code.NO_TRAFFIC,
        Code.ANALYSIS_RUNNING,
        Code.METRICS_UNAVAILABLE,
        Code.AWAITING_APPROVAL,
        Code.PAUSED_BY_STEP,
        Code.PAUSED_INCONCLUSIVE,
        Code.PAUSED_BY_DEADLINE,
    }
)
