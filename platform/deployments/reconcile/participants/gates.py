"""Gates: webhook calls to the external systems of a rollout's step, repeated until each answers go or no.

Each has a row. A tick of the reconciler opens the rows of a step that waits for them, in the transaction that records
the wait; it makes no calls itself. A task posts with no transaction open; a sweep finds lost ones. Taking a row is a
conditional UPDATE that also sets the next attempt, so of two workers one posts, and the next takes over from one that
died. The reconciler reads the answers from the rows and lets the pure state machine decide.

    open --asked--> wait, unavailable --asked again, later each time--> ...
                    go, no                                              decided, asked no more
                    deadline                                            asked no more; the machine pauses or aborts

Posts are signed with the secret of the enabled webhook that the service's team, or else the installation, has
registered for the address with the event `ConfirmRollout`. Without one no call is made.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from accounts.domain.roles import Owned
from accounts.selectors import owning_team
from common.encryption import unseal
from common.errors import NotFound, Unavailable
from deployments import mapping
from deployments.domain.phases import Code, Phase
from deployments.domain.policy import StepWebhook, match_json
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.webhooks import Answer, Asked, ask_again_after, read_answer, to_ask
from deployments.models import AnalysisRun, Revision, Rollout, WebhookQuestion
from deployments.reconcile import hints
from deployments.reconcile.service_change import changing
from events.domain.kinds import Kind
from events.models import Webhook
from events.services.delivery import CONFIRM, SECRET
from integrations.outbound import signature_of

_SPARE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Question:
    """The right to call one webhook once."""

    id: int
    number: int
    service_id: int
    url: str
    body: bytes
    headers: dict[str, str]
    timeout_s: float


def questions_of(*, rollout: Rollout, state: RolloutState, now: datetime) -> tuple[Asked, ...]:
    """Return the answers of the webhooks of the rollout's present step."""
    if state.step is None or not state.step.webhooks:
        return ()
    asked = WebhookQuestion.objects.filter(rollout=rollout, attempt=state.attempt, step_index=state.step_index)
    return tuple(
        Asked(
            row.step_index,
            row.name,
            Answer(row.answer),
            row.message,
            row.tries,
            is_overdue=row.decided_at is None and row.deadline_at <= now,
        )
        for row in asked.order_by("pk")
    )


def questions_open(*, rollout: Rollout, state: RolloutState, now: datetime) -> None:
    """Open the calls of the webhooks for which the rollout waits; open ones stay as they are."""
    if state.reason.code is not Code.WAITING_FOR_WEBHOOK or state.step is None:
        return
    known = WebhookQuestion.objects.filter(rollout=rollout, attempt=state.attempt, step_index=state.step_index)
    asked = [Asked(row.step_index, row.name, Answer(row.answer)) for row in known]
    opened = WebhookQuestion.objects.bulk_create(
        WebhookQuestion(
            rollout=rollout,
            attempt=state.attempt,
            step_index=state.step_index,
            name=webhook.name,
            when=webhook.when,
            next_try_at=now,
            deadline_at=now + webhook.deadline,
            opened_at=now,
        )
        for webhook in to_ask(state.step, state.step_index, asked)
    )
    hints.ask_soon([row.pk for row in opened])


def questions_pass_over(*, rollout: Rollout, unseen: timedelta) -> None:
    """Exclude the time in which the reconciler saw nothing from every deadline."""
    WebhookQuestion.objects.filter(rollout=rollout, decided_at=None).update(deadline_at=F("deadline_at") + unseen)


def questions_let_pass(*, rollout: Rollout, by: str, now: datetime) -> bool:
    """Let the paused step pass without its undecided webhooks; False where none is undecided."""
    undecided = WebhookQuestion.objects.filter(
        rollout=rollout, attempt=rollout.attempt, step_index=rollout.step_index, decided_at=None
    )
    return bool(undecided.update(answer=Answer.GO, message=f"{by} let the step pass without it", decided_at=now))


def questions_due(*, now: datetime, limit: int) -> list[int]:
    """Return the ids of the calls that are due now, longest waiting first."""
    return list(_open(now).order_by("next_try_at", "pk").values_list("pk", flat=True)[:limit])


def question_begin(*, question_id: int, now: datetime) -> Question | None:
    """Take the right to call now; None where it is not due, taken by another, or cannot be signed."""
    row = _open(now).select_related("rollout__service").filter(pk=question_id).first()
    webhook = None if row is None else _webhook_of(row)
    if row is None or webhook is None:
        return None
    taken = WebhookQuestion.objects.filter(pk=row.pk, tries=row.tries, next_try_at=row.next_try_at, decided_at=None)
    if not taken.update(tries=row.tries + 1, next_try_at=now + 2 * webhook.timeout + _SPARE):
        return None
    question = Question(row.pk, row.tries + 1, row.rollout.service_id, "", b"", {}, webhook.timeout.total_seconds())
    registered = _registered(webhook.url, row.rollout.service.namespace)
    if registered is None:
        why = (
            f"no webhook with the event {CONFIRM} is registered and enabled for {webhook.url}, whose secret would sign "
            f"the question; an administrator makes one by `fairlead webhooks create {webhook.url} --event {CONFIRM}`"
        )
        question_end(of=question, status=None, answer=why, now=now)
        return None
    body = json.dumps(_payload(row, webhook, now), separators=(",", ":")).encode()
    try:
        secret = unseal(registered.sealed_secret, purpose=SECRET)
    except Unavailable as error:
        question_end(of=question, status=None, answer=error.message, now=now)
        return None
    headers = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "Fairlead-Webhook/1",
        "Fairlead-Event": CONFIRM,
        "Fairlead-Delivery": f"question-{row.pk}-{question.number}",
        "Fairlead-Signature": signature_of(secret, body, now),
    }
    return Question(row.pk, question.number, question.service_id, registered.url, body, headers, question.timeout_s)


def question_end(*, of: Question, status: int | None, answer: str, now: datetime) -> None:
    """Write the answer; nothing where it is too late, or a later call has begun.

    Args:
        status: the HTTP status; None where no answer came.
        answer: the beginning of the answer, or why none came.
    """
    said, message = read_answer(status, answer.replace(of.url, of.url.partition("?")[0]) if of.url else answer)
    decided = now if said.is_decided else None
    again = now + ask_again_after(of.number)
    try:
        with changing(of.service_id, now=now) as change:
            row = _open(now, due=False).select_related("rollout__to_revision").filter(pk=of.id, tries=of.number).first()
            if row is None:
                return
            if said is not Answer(row.answer) or row.answered_at is None:
                line = f"webhook {row.name} answered {said} at step {row.step_index + 1}" + (message and f": {message}")
                to = row.rollout.to_revision.name
                change.event(Kind.ROLLOUT_WEBHOOK_ANSWERED, line, revision=to, rollout=row.rollout, by_itself=True)
            row.answer, row.message, row.answered_at, row.decided_at = said, message, now, decided
            row.next_try_at = again
            row.save(update_fields=["answer", "message", "answered_at", "decided_at", "next_try_at"])
            hints.reconcile_soon(of.service_id)
    except NotFound:
        return


def _open(now: datetime, *, due: bool = True) -> QuerySet[WebhookQuestion]:
    """Return the open calls of steps at which rollouts are now, undecided and before their deadline."""
    waiting = WebhookQuestion.objects.filter(
        decided_at=None,
        deadline_at__gt=now,
        attempt=F("rollout__attempt"),
        step_index=F("rollout__step_index"),
        rollout__phase__in=(Phase.PENDING, Phase.PROGRESSING),
    )
    return waiting.filter(next_try_at__lte=now) if due else waiting


def _webhook_of(row: WebhookQuestion) -> StepWebhook | None:
    """Return the webhook of the rollout's policy."""
    step = mapping.rollout_state(row.rollout).step
    found = () if step is None else step.webhooks
    return next((webhook for webhook in found if webhook.name == row.name), None)


def _registered(url: str, namespace: str) -> Webhook | None:
    """Return the registered webhook for an address: the team's own, else the installation's."""
    team = owning_team(kind=Owned.NAMESPACE, name=namespace)
    found = Webhook.objects.filter(
        Q(url=url) | Q(url__startswith=f"{url}?"), Q(team=None) | Q(team__name=team), enabled=True
    ).order_by(F("team").asc(nulls_last=True), "pk")
    return next((webhook for webhook in found if CONFIRM in webhook.events), None)


def _payload(row: WebhookQuestion, webhook: StepWebhook, now: datetime) -> dict[str, object]:
    """Return the payload: what would proceed, its position, and the evidence so far."""
    rollout = row.rollout
    stable, new, state = rollout.from_revision, rollout.to_revision, mapping.rollout_state(rollout)
    run = AnalysisRun.objects.filter(rollout=rollout, attempt=row.attempt, step_index=row.step_index).first()
    return {
        "id": row.pk,
        "event": CONFIRM,
        "at": now.isoformat(),
        "webhook": webhook.name,
        "when": webhook.when.value,
        "tries": row.tries + 1,
        "deadline": row.deadline_at.isoformat(),
        "service": str(rollout.service),
        "rollout": rollout.pk,
        "policy": rollout.policy_name,
        "attempt": row.attempt,
        "step": row.step_index + 1,
        "steps": len(state.policy.steps),
        "weight": state.portion.weight,
        "mirror": state.portion.mirror,
        "match": match_json(state.portion.match),
        "from": _revision(stable),
        "to": _revision(new),
        "evidence": None if run is None else _evidence(run),
    }


def _revision(revision: Revision) -> dict[str, object]:
    version = revision.model_version
    return {
        "revision": revision.name,
        "model": version.model.name,
        "version": version.number,
        "digest": revision.artifact_digest,
    }


def _evidence(run: AnalysisRun) -> dict[str, object]:
    return {
        "verdict": run.verdict,
        "message": run.message,
        "requests": {"canary": run.canary_requests, "stable": run.stable_requests},
        "measurements": run.measurements,
    }
