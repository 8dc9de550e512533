"""Approval views of the API and the pages, as values. Pure; made by the selectors."""

from dataclasses import dataclass
from datetime import datetime

from accounts.domain.approver import Approver
from accounts.domain.demand import Demand
from deployments.domain.rollout.approvals import Author, Tally, refusal, token_refusal


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """An approval and its present validity.

    Attributes:
        point: its point: `the beginning` or `step 2`; with the digests, its whole subject.
        state: counts, used, expired or withdrawn.
        why: why it expired.
    """

    id: int
    user: str
    comment: str
    point: str
    attempt: int
    artifact_digest: str
    configuration_digest: str
    policy_digest: str
    state: str
    why: str
    given_at: datetime


@dataclass(frozen=True, slots=True)
class ApprovalsView:
    """The approvals of a rollout, given and required.

    Attributes:
        asked: the approvals required at the present point, and those given; None where none is required.
        is_awaited: approvals can be given now.
        point: their subject.
        given: all approvals ever given, oldest first.
        demands: those on the service's namespace.
    """

    asked: Tally | None
    is_awaited: bool
    point: str
    authors: tuple[Author, ...]
    given: tuple[ApprovalView, ...]
    demands: tuple[Demand, ...] = ()

    def refusal(self, approver: Approver) -> str:
        """Return why a user whose role allows it may not approve now; empty where he may."""
        if self.asked is None or not self.is_awaited:
            return "the rollout waits for no approval now"
        return refusal(approver, self.asked.rule, self.authors, self.asked.judged, self.demands)

    def token_refusal(self, approver: Approver) -> str:
        """Return why the user's token neither approves nor rejects now; empty where it may."""
        return "" if self.asked is None else token_refusal(approver, self.asked.rule, self.demands)

    def has_of(self, user: str) -> bool:
        """Return whether an approval of the user counts now."""
        return self.asked is not None and any(approval.user == user for approval in self.asked.counting)


NO_APPROVALS = ApprovalsView(asked=None, is_awaited=False, point="", authors=(), given=())
