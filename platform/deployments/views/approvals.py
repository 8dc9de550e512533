"""What the API and the pages show of approvals, as values. Pure; made by the selectors."""

from dataclasses import dataclass
from datetime import datetime

from deployments.domain.rollout.approvals import Author, Tally, refusal


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """An approval and what it is good for now.

    Attributes:
        point: what it is for: `the beginning` or `step 2`; with the digests that is all it is for.
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
    """What was approved of a rollout, and what is asked for.

    Attributes:
        asked: what is asked for where it stands, and how much of it is there; None where nobody is asked.
        is_awaited: approvals can be given now.
        point: what they would be for.
        given: all that were ever given, oldest first.
    """

    asked: Tally | None
    is_awaited: bool
    point: str
    authors: tuple[Author, ...]
    given: tuple[ApprovalView, ...]

    def refusal(self, user: str) -> str:
        """Return why a user, whose role would let him, may not approve now; empty where he may."""
        if self.asked is None or not self.is_awaited:
            return "the rollout waits for no approval now"
        return refusal(user, self.asked.rule, self.authors, self.asked.judged)

    def has_of(self, user: str) -> bool:
        """Return whether an approval of the user counts now."""
        return self.asked is not None and any(approval.user == user for approval in self.asked.counting)


NO_APPROVALS = ApprovalsView(asked=None, is_awaited=False, point="", authors=(), given=())
