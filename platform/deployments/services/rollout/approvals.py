"""Rollout approvals: approve, withdraw and reject."""

from datetime import datetime

from accounts.domain.approver import Approver
from accounts.domain.demand import Demand
from accounts.domain.roles import Owned
from accounts.models import User
from accounts.selectors.demands import demands_on
from common.errors import Conflict, InvalidInput, InvalidTransition, NotPermitted
from common.identifiers import check_comment
from deployments import mapping
from deployments.domain import rollout as machine
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.approvals import Tally, refusal, token_refusal
from deployments.models import Approval, Rollout
from deployments.reconcile.service_change import Change
from deployments.selectors import approval_tally, rollout_authors
from deployments.services.rollout.rollouts import rollout_move
from events.domain.kinds import Kind


def rollout_approve(*, rollout_id: int, approver: Approver, comment: str, actor: str, now: datetime) -> Rollout:
    """Record the user's approval of the rollout's present point.

    With the last required approval, the reconciler's next tick lets it proceed.

    Raises:
        NotFound: no such rollout.
        InvalidTransition: it waits for no approval.
        NotPermitted: the policy asks for four eyes, and the user is behind the rollout; or it matters who approves, and
            another user made the token; or a demand that approvers sign in is not met.
        Conflict: the user has approved already.
    """
    check_comment(comment)

    def approve(change: Change, state: RolloutState) -> RolloutState:
        row = _asked(change, rollout_id, state)
        _refuse(approver, row, _tally(row, state, now))
        subject = mapping.approval_subject(row, state)
        Approval.objects.create(
            rollout=row,
            user=User.objects.get(username=approver.username),
            given_by=actor,
            comment=comment,
            attempt=subject.attempt,
            step_index=subject.step_index,
            artifact_digest=subject.artifact_digest,
            configuration_digest=subject.configuration_digest,
            policy_digest=subject.policy_digest,
            given_at=now,
        )
        given = len(_tally(row, state, now).counting)
        asked = 1 if state.approval is None else state.approval.approvals
        _record_event(
            change,
            row,
            Kind.ROLLOUT_APPROVED,
            f"{approver.username} approved {subject.point} ({given} of {asked})",
            comment,
        )
        return state

    return rollout_move(rollout_id, "approve", approve, actor, now, detail={"comment": comment})


def rollout_withdraw(*, rollout_id: int, approver: Approver, actor: str, now: datetime) -> Rollout:
    """Withdraw the user's approval, as long as the rollout waits.

    Raises:
        NotFound: no such rollout.
        InvalidTransition: it waits for no approval.
        Conflict: the user has no approval that counts.
    """

    def withdraw(change: Change, state: RolloutState) -> RolloutState:
        row = _asked(change, rollout_id, state)
        mine = [each.id for each in _tally(row, state, now).counting if each.user == approver.username]
        if not mine:
            raise Conflict(f"{approver.username} has given no approval of rollout {rollout_id} that counts now")
        Approval.objects.filter(pk__in=mine).update(withdrawn_at=now)
        _record_event(change, row, Kind.ROLLOUT_APPROVAL_WITHDRAWN, f"{approver.username} took the approval back")
        return state

    return rollout_move(rollout_id, "withdraw", withdraw, actor, now)


def rollout_reject(*, rollout_id: int, approver: Approver, comment: str, actor: str, now: datetime) -> Rollout:
    """Abort a rollout that waits for approvals; allowed for approvers, and for the people behind it.

    Raises:
        NotFound: no such rollout.
        InvalidInput: the reason is missing.
        InvalidTransition: it waits for no approval.
        NotPermitted: it matters who approves, and another user made the token; or approvers have to sign in themselves.
    """
    check_comment(comment)
    if not comment.strip():
        raise InvalidInput("comment is empty; say why the rollout is rejected", field="comment")

    def reject(change: Change, state: RolloutState) -> RolloutState:
        demands = _demands(change.service.namespace)
        if why := "" if state.approval is None else token_refusal(approver, state.approval, demands):
            raise NotPermitted(f"rollout {rollout_id} is not rejected: {why}")
        return machine.reject(state, now, approver.username, comment)

    return rollout_move(rollout_id, "reject", reject, actor, now, detail={"comment": comment})


def _asked(change: Change, rollout_id: int, state: RolloutState) -> Rollout:
    """Return the rollout, which waits for approvals."""
    row = change.newest
    if row is None or row.pk != rollout_id or not state.asks_for_approval:
        raise InvalidTransition(
            f"rollout {rollout_id} waits for no approval now; it is {state.phase}: {state.reason.message}"
        )
    return row


def _tally(row: Rollout, state: RolloutState, now: datetime) -> Tally:
    found = approval_tally(rollout=row, state=state, now=now)
    if found is None:
        raise InvalidTransition(f"rollout {row.pk} waits for no approval now")
    return found


def _refuse(approver: Approver, row: Rollout, found: Tally) -> None:
    """Raise where the user may not approve although the role allows it."""
    if any(approval.user == approver.username for approval in found.counting):
        raise Conflict(refusal(approver, found.rule, (), found.judged))
    demands = _demands(row.service.namespace)
    if why := refusal(approver, found.rule, rollout_authors([row])[row.pk], found.judged, demands):
        raise NotPermitted(why)


def _demands(namespace: str) -> tuple[Demand, ...]:
    return demands_on(Owned.NAMESPACE, [namespace])[namespace]


def _record_event(change: Change, row: Rollout, kind: Kind, what: str, comment: str = "") -> None:
    said = f": {comment}" if comment else ""
    change.event(kind, f"{what}{said}", revision=row.to_revision.name, rollout=row)
