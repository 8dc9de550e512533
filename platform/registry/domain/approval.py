"""Approval of model versions by users. Pure.

    unreviewed --approve--> approved <--approve / decline--> declined <--decline-- unreviewed

REJECTED is the outcome of the platform's check (`version_lifecycle`); declined is a user's decision.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from accounts.domain.approver import Approver
from common.errors import InvalidInput
from common.identifiers import check_comment, is_user


class Approval(StrEnum):
    """Decision on a version; it is for exactly these files, since they never change."""

    UNREVIEWED = "unreviewed"
    APPROVED = "approved"
    DECLINED = "declined"


DECISIONS = (Approval.APPROVED, Approval.DECLINED)


def parse_decision(text: str) -> Approval:
    """Return the parsed decision; raises InvalidInput."""
    if text not in DECISIONS:
        raise InvalidInput(f"state is {text[:40]!r}; expected {' or '.join(DECISIONS)}", field="state")
    return Approval(text)


def check_said(decision: Approval, comment: str) -> str:
    """Return the stripped comment; raises InvalidInput where it is too long, or missing."""
    check_comment(comment)
    said = comment.strip()
    if decision is Approval.DECLINED and not said:
        raise InvalidInput("comment is empty; say why the version is declined", field="comment")
    return said


def refusal(approver: Approver, registered_by: Mapping[str, Collection[str]]) -> str:
    """Return why a user with a sufficient role may not approve a version; empty where he may.

    Args:
        registered_by: who registered the version or imported its files, as the audit log names them, each with the
            users who made that token for its user.
    """
    if approver.refusal:
        return approver.refusal
    username = approver.username
    for actor, makers in registered_by.items():
        if is_user(actor, username):
            return f"{username} registered it, and it takes four eyes; somebody else has to approve"
        if username in makers:
            return (
                f"{username} made the token of {actor}, who registered it, and it takes four eyes; somebody else has "
                "to approve"
            )
    return ""


def unfit(state: Approval, *, is_required: bool, by: str, comment: str) -> str:
    """Return why a version may not be deployed, as the end of a sentence; empty where it may."""
    if not is_required or state is Approval.APPROVED:
        return ""
    if state is Approval.DECLINED:
        return f"was declined by {by}: {comment.rstrip('.')}; roll out one that is approved"
    return "is not approved, which its model asks for; have somebody approve it who did not register it"
