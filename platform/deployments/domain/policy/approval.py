"""Approval rule of a rollout: how many people must approve it; read from and written to the policy file. Pure."""

from dataclasses import dataclass
from datetime import timedelta

from common import durations
from common.files.document import Document

_MOST = 20


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """The required approvals at one point of a rollout.

    Attributes:
        approvals: how many different people have to approve.
        four_eyes: the person who started the rollout, or registered its content, cannot be one of them.
        expires: how long an approval counts.
    """

    approvals: int = 1
    four_eyes: bool = False
    expires: timedelta = timedelta(hours=24)

    @property
    def is_of_people(self) -> bool:
        """Return whether it matters who approves: a token that another user made is refused."""
        return self.four_eyes or self.approvals > 1


def parse_approval(document: Document) -> ApprovalRule:
    """Return the rule of an object of the file; raises InvalidInput."""
    rule = ApprovalRule(
        approvals=document.integer("approvals", minimum=1, maximum=_MOST, default=1),
        four_eyes=document.flag("fourEyes", default=False),
        expires=document.duration("expires", default=timedelta(hours=24), positive=True),
    )
    document.refuse_unknown()
    return rule


def approval_json(rule: ApprovalRule) -> dict[str, object]:
    """Return the rule as the file has it."""
    return {"approvals": rule.approvals, "fourEyes": rule.four_eyes, "expires": durations.render(rule.expires)}


def parse_pause(document: Document) -> tuple[bool, ApprovalRule | None]:
    """Return whether a step's `pause` stops it, and the approval that ends it; None is anybody's promote."""
    if isinstance(document.raw("pause", False), dict):
        return True, parse_approval(document.document("pause"))
    return document.flag("pause", default=False), None
