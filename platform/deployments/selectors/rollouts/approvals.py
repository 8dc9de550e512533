"""Rollout approvals, given and required."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from accounts.domain.demand import Demand
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.selectors import makers_of_tokens, users_who_may
from accounts.selectors.demands import demands_on
from deployments import mapping
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.approvals import Author, Judged, Tally, judge, point_of, tally, with_makers
from deployments.models import Approval, Rollout
from deployments.views.approvals import ApprovalsView, ApprovalView

NEEDED = Scope.WRITE
"""Scope of an approval: a `deployer` of the team, as for every change of rollouts."""


def approval_tally(*, rollout: Rollout, state: RolloutState, now: datetime) -> Tally | None:
    """Return the tally of approvals at the rollout's present point; None where none is required."""
    if state.approval is None:
        return None
    given = list(_given([rollout])[rollout.pk])
    allowed = _allowed([rollout])[rollout.service.namespace] if given else ()
    there = mapping.approval_subject(rollout, state)
    return tally(state.approval, [mapping.approval(row, allowed) for row in given], there, now)


def approvals_views(rollouts: Iterable[Rollout], now: datetime) -> dict[int, ApprovalsView]:
    """Return the given and required approvals, by rollout; their revisions and services must be loaded."""
    rollouts = list(rollouts)
    given = _given(rollouts)
    states = {rollout.pk: mapping.rollout_state(rollout) for rollout in rollouts}
    awaited = [rollout for rollout in rollouts if states[rollout.pk].asks_for_approval]
    authors = rollout_authors(awaited)
    demands = demands_on(Owned.NAMESPACE, {each.service.namespace for each in awaited})
    deciding = [rollout for rollout in rollouts if given[rollout.pk] and rollout.finished_at is None]
    allowed = _allowed(deciding)
    return {
        rollout.pk: _view(
            states[rollout.pk],
            tuple(_judged(rollout, states[rollout.pk], given[rollout.pk], allowed, now)),
            given[rollout.pk],
            authors.get(rollout.pk, ()),
            demands.get(rollout.service.namespace, ()),
        )
        for rollout in rollouts
    }


def rollout_authors(rollouts: Iterable[Rollout]) -> dict[int, tuple[Author, ...]]:
    """Return the people behind each rollout, and those who made their tokens; one query for all."""
    found = {rollout.pk: mapping.authors(rollout) for rollout in rollouts}
    makers = makers_of_tokens({author.actor for authors in found.values() for author in authors})
    return {pk: tuple(with_makers(authors, makers)) for pk, authors in found.items()}


def _given(rollouts: Iterable[Rollout]) -> Mapping[int, list[Approval]]:
    given = defaultdict(list)
    for row in Approval.objects.filter(rollout__in=list(rollouts)).select_related("user").order_by("id"):
        given[row.rollout_id].append(row)
    return given


def _allowed(rollouts: Iterable[Rollout]) -> Mapping[str, set[int]]:
    names = {rollout.service.namespace for rollout in rollouts}
    return users_who_may(NEEDED, kind=Owned.NAMESPACE, names=names) if names else {}


def _view(
    state: RolloutState,
    judged: tuple[Judged, ...],
    given: Sequence[Approval],
    authors: tuple[Author, ...],
    demands: tuple[Demand, ...],
) -> ApprovalsView:
    by_id = {row.pk: row for row in given}
    return ApprovalsView(
        asked=None if state.approval is None else Tally(state.approval, judged),
        is_awaited=state.asks_for_approval,
        point=point_of(state.approval_step),
        authors=authors,
        given=tuple(_approval_view(each, by_id[each.approval.id]) for each in judged),
        demands=demands,
    )


def _judged(
    rollout: Rollout, state: RolloutState, given: Sequence[Approval], allowed: Mapping[str, set[int]], now: datetime
) -> Iterator[Judged]:
    if not given:
        return
    may = allowed.get(rollout.service.namespace, set())
    over = rollout.phase if state.phase.is_finished else ""
    there = mapping.approval_subject(rollout, state)
    for row in given:
        yield judge(mapping.approval(row, may), there, now, rule=state.approval, over=over)


def _approval_view(judged: Judged, row: Approval) -> ApprovalView:
    return ApprovalView(
        id=row.pk,
        user=judged.approval.user,
        comment=row.comment,
        point=judged.approval.subject.point,
        attempt=row.attempt,
        artifact_digest=row.artifact_digest,
        configuration_digest=row.configuration_digest,
        policy_digest=row.policy_digest,
        state=judged.standing,
        why=judged.why,
        given_at=row.given_at,
    )
