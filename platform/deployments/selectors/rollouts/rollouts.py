"""Rollout queries, with analysis runs and the answers of webhook gates."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import F, QuerySet

from common.errors import NotFound
from deployments import mapping as rows
from deployments.domain.analysis.evidence.labelled import Habits
from deployments.domain.analysis.evidence.ledger import stored_ledger
from deployments.domain.analysis.verdict import Measurement
from deployments.domain.phases import Phase
from deployments.domain.policy import (
    Policy,
    Step,
    Strategy,
    affinity_json,
    approval_json,
    background_json,
    gate_json,
    match_json,
    stored_policy,
    webhook_json,
)
from deployments.domain.rollout import RolloutState
from deployments.domain.service_state.contract import Contract
from deployments.domain.waits import Counted, wait_of_rollout
from deployments.models import AnalysisRun, InferenceService, Rollout, WebhookQuestion
from deployments.selectors.rollouts.approvals import approvals_views
from deployments.views.approvals import ApprovalsView
from deployments.views.shapes import (
    AnalysisRunView,
    QuestionView,
    ReasonView,
    RequestsView,
    RolloutView,
    SiblingView,
    StepView,
)

OF_ROLLOUT = ("service", "from_revision__model_version", "to_revision__model_version")


def rollout_query(*, service: InferenceService | None = None) -> QuerySet[Rollout]:
    """Return rollouts, of one service where given, with the relations that `rollout_views` reads."""
    rollouts = Rollout.objects.select_related(*OF_ROLLOUT)
    return rollouts if service is None else rollouts.filter(service=service)


def rollout_detail(*, rollout_id: int, now: datetime) -> RolloutView:
    """Return one rollout with all its analysis runs; raises NotFound."""
    rollout = rollout_query().filter(pk=rollout_id).first()
    if rollout is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    return rollout_views([rollout], now=now)[0]


def rollout_of_service(*, namespace: str, name: str, rollout_id: int) -> Rollout:
    """Return a service's rollout with the relations that `rollout_views` reads; raises NotFound, also for another's."""
    row = rollout_query().filter(pk=rollout_id, service__namespace=namespace, service__name=name).first()
    if row is None:
        raise NotFound(f"service {namespace}/{name} has no rollout {rollout_id}")
    return row


def rollout_siblings(*, service_id: int, limit: int) -> list[SiblingView]:
    """Return the newest rollouts of a service in a line each, newest first."""
    columns = ("pk", "from_revision__model_version__number", "to_revision__model_version__number")
    rows = Rollout.objects.filter(service=service_id).order_by("-pk")
    return [SiblingView(*row) for row in rows.values_list(*columns, "phase", "started_at", "finished_at")[:limit]]


def rollout_namespace(*, rollout_id: int) -> str:
    """Return the namespace of the rollout's service; raises NotFound."""
    found = Rollout.objects.filter(pk=rollout_id).values_list("service__namespace", flat=True).first()
    if found is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    return found


def rollout_policy(*, rollout_id: int) -> Policy:
    """Return the policy of the rollout's start; raises NotFound."""
    document = Rollout.objects.filter(pk=rollout_id).values_list("policy_document", flat=True).first()
    if document is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    return stored_policy(document)


def label_habits_fixed(*, rollout_id: int, step_index: int) -> dict[str, Habits]:
    """Return what the newest attempt found of stable's labels at its first look in a step, by scorer."""
    runs = AnalysisRun.objects.filter(rollout=rollout_id, step_index=step_index).order_by("-attempt")
    known = stored_ledger(runs.values_list("evidence", flat=True).first() or {})
    watches = {} if known is None else known.labels
    return {scorer: watch.habits for scorer, watch in watches.items() if watch.habits is not None}


def rollout_views(rollouts: Iterable[Rollout], *, now: datetime) -> list[RolloutView]:
    """Return the rollouts with their analysis runs, in the order given."""
    rollouts = list(rollouts)
    runs = defaultdict(list)
    in_order = ("attempt", F("step_index").asc(nulls_last=True))
    for run in AnalysisRun.objects.filter(rollout__in=rollouts).order_by(*in_order):
        runs[run.rollout_id].append(run)
    asked = questions_views(rollouts, now)
    approvals = approvals_views(rollouts, now)
    views = [_rollout_view(rollout, runs[rollout.pk], approvals[rollout.pk]) for rollout in rollouts]
    return [replace(view, webhooks=asked[view.id]) for view in views]


def _rollout_view(rollout: Rollout, runs: Sequence[AnalysisRun], approvals: ApprovalsView) -> RolloutView:
    state = rows.rollout_state(rollout)
    policy, is_shadow = state.policy, state.policy.strategy is Strategy.SHADOW
    observed = rollout.service.observed.get(rollout.to_revision.name, {})
    views = tuple(_run_view(run, policy.steps) for run in runs)
    of_steps = (view for view in reversed(views) if view.step_index is not None)
    present = next((view for view in of_steps if view.attempt == rollout.attempt), None)
    return RolloutView(
        id=rollout.pk,
        service=str(rollout.service),
        from_revision=rollout.from_revision.name,
        to_revision=rollout.to_revision.name,
        from_version=rollout.from_revision.model_version.number,
        to_version=rollout.to_revision.model_version.number,
        policy=rollout.policy_name or None,
        strategy=policy.strategy,
        phase=rollout.phase,
        attempt=rollout.attempt,
        step_index=rollout.step_index,
        steps=tuple(step_view(step) for step in policy.steps),
        weight_wanted=state.portion.weight,
        weight_actual=int(observed.get("weight", 0)),
        weight_seen_percent=None if present is None else present.seen_percent,
        seen_requests=0 if present is None else _clients_requests(present.requests, present.mirror_percent),
        mirror_wanted=state.portion.mirror,
        mirror_actual=int(observed.get("mirror", 0)),
        match_wanted=tuple(match_json(state.portion.match)),
        match_actual=tuple(observed.get("match", ())),
        session_affinity=None if policy.affinity is None else affinity_json(policy.affinity),
        analysis=None if policy.background is None else background_json(policy.background),
        confirmed_at=state.confirmed_at,
        deadline_at=state.deadline_at,
        on_deadline=None if policy.deadline is None else policy.on_deadline,
        then=policy.then if is_shadow else None,
        waits=wait_of_rollout(
            state, rollout.reason_since or rollout.attempt_started_at, _counted(rollout, state, runs)
        ),
        reason=ReasonView(rollout.reason_code, rollout.reason_message),
        contract=None if rollout.contract is None else Contract.stored(rollout.contract),
        verdict=rollout.verdict,
        analysis_runs=views,
        started_at=rollout.started_at,
        finished_at=rollout.finished_at,
        created_by=rollout.created_by,
        approvals=approvals,
    )


def _counted(rollout: Rollout, state: RolloutState, runs: Sequence[AnalysisRun]) -> Counted | None:
    """Return the counts of the present step; None without any."""
    now = (state.attempt, state.step_index)
    run = next((run for run in runs if (run.attempt, run.step_index) == now), None)
    if run is None:
        return None
    more = [each["more_requests"] for each in run.measurements if each.get("more_requests") is not None]
    return Counted(run.canary_requests, run.first_request_at, rollout.service.seen_at, max(more, default=None))


def step_view(step: Step) -> StepView:
    """Return a step of a policy as pages and API show it."""
    analysis = None if step.gate is None else gate_json(step.gate)
    approval = None if step.approval is None else approval_json(step.approval)
    return StepView(
        weight=step.weight,
        hold_seconds=step.hold.total_seconds(),
        pause=step.pause,
        analysis=analysis,
        approval=approval,
        mirror=step.mirror,
        match=tuple(match_json(step.match)),
        webhooks=tuple(webhook_json(webhook) for webhook in step.webhooks),
    )


def _clients_requests(requests: RequestsView, mirror_percent: int) -> int:
    """Return how many requests clients sent, without copies."""
    return requests.stable if mirror_percent else requests.canary + requests.stable


def _run_view(run: AnalysisRun, steps: Sequence[Step]) -> AnalysisRunView:
    requests = RequestsView(run.canary_requests, run.stable_requests)
    total = _clients_requests(requests, run.mirror)
    return AnalysisRunView(
        step_index=run.step_index,
        attempt=run.attempt,
        weight_percent=run.weight,
        mirror_percent=run.mirror,
        verdict=run.verdict,
        message=run.message,
        started_at=run.started_at,
        finished_at=run.finished_at,
        requests=requests,
        # A copy may be counted before its original request.
        seen_percent=round(min(100.0, 100 * run.canary_requests / total), 2) if total else None,
        measurements=tuple(Measurement(**measurement) for measurement in run.measurements),
        has_gate=run.step_index is None or (run.step_index < len(steps) and steps[run.step_index].gate is not None),
    )


def questions_views(rollouts: Iterable[Rollout], now: datetime) -> Mapping[int, tuple[QuestionView, ...]]:
    """Return the webhook calls of each rollout, in their order."""
    by_id = {rollout.pk: rollout for rollout in rollouts}
    found = defaultdict[int, list[QuestionView]](list)
    for row in WebhookQuestion.objects.filter(rollout__in=list(by_id)).order_by("pk"):
        found[row.rollout_id].append(_question_view(row, by_id[row.rollout_id], now))
    return {pk: tuple(found[pk]) for pk in by_id}


def _question_view(row: WebhookQuestion, rollout: Rollout, now: datetime) -> QuestionView:
    is_there = (row.attempt, row.step_index) == (rollout.attempt, rollout.step_index)
    is_asking = rollout.phase in (Phase.PENDING, Phase.PROGRESSING) and row.decided_at is None and now < row.deadline_at
    return QuestionView(
        name=row.name,
        when=row.when,
        attempt=row.attempt,
        step_index=row.step_index,
        answer=row.answer,
        message=row.message,
        tries=row.tries,
        is_open=is_there and is_asking,
        answered_at=row.answered_at,
        deadline_at=row.deadline_at,
    )
