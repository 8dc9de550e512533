"""Rollout approvals: which count, and who may not approve. Pure: reconciler and services supply rows and clock.

    given ── as many as are required count together ───► used
      ├── withdrawn by who gave it ────────────────────► withdrawn
      └── too old; another attempt, step, artifact, configuration or policy; who gave it may no more ──► expired

An approval is for exactly one `Subject`. It is compared with the present subject each time it is counted, so only what
was approved is rolled out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from accounts.domain.approver import Approver
from accounts.domain.demand import Demand, signed_in_refusal
from common import durations, identifiers
from deployments.domain.policy import ApprovalRule


class Standing(StrEnum):
    """The validity of an approval."""

    COUNTS = "counts"
    USED = "used"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an approval.

    Attributes:
        step_index: the step whose pause is to end; None for the beginning, before any traffic.
        artifact_digest: of the model files that the new revision serves.
        configuration_digest: of the revision's other content: model configuration, environment, resources, scaling.
        policy_digest: of the text that the rollout follows.
    """

    attempt: int
    step_index: int | None
    artifact_digest: str
    configuration_digest: str
    policy_digest: str

    @property
    def point(self) -> str:
        """Return its point in the rollout, as a part of a sentence."""
        return point_of(self.step_index)


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval that was given.

    Attributes:
        lost_right: why its author may no longer approve; empty while he may.
    """

    id: int
    user: str
    subject: Subject
    given_at: datetime
    used_at: datetime | None = None
    withdrawn_at: datetime | None = None
    lost_right: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """An approval and its present validity; `why` is set for one that is no longer valid."""

    approval: Approval
    standing: Standing
    why: str = ""


@dataclass(frozen=True, slots=True)
class Author:
    """A person behind a rollout; `did` is the contribution, such as `started the rollout`."""

    actor: str
    did: str

    def is_user(self, username: str) -> bool:
        """Return whether that is the user, with any token."""
        return identifiers.is_user(self.actor, username)


@dataclass(frozen=True, slots=True)
class Tally:
    """The approvals given and required at the point where a rollout waits."""

    rule: ApprovalRule
    judged: tuple[Judged, ...]

    @property
    def counting(self) -> tuple[Approval, ...]:
        """Return the approvals that count, one per person."""
        newest = {each.approval.user: each.approval for each in self.judged if each.standing is Standing.COUNTS}
        return tuple(newest.values())

    @property
    def missing(self) -> int:
        """Return how many more people have to approve."""
        return max(0, self.rule.approvals - len(self.counting))

    @property
    def is_complete(self) -> bool:
        """Return whether the rollout may proceed."""
        return not self.missing

    @property
    def message(self) -> str:
        """Return the progress, as a part of a sentence."""
        needed = "an approval" if self.rule.approvals == 1 else f"{self.rule.approvals} approvals"
        given = ", ".join(approval.user for approval in self.counting)
        so_far = f", {len(self.counting)} of which {given} gave" if given else ""
        lost = [f"that of {each.approval.user} expired: {each.why}" for each in self._expired_here()]
        return "; ".join([f"{needed}{so_far}", *lost[-2:]])

    def _expired_here(self) -> list[Judged]:
        again = {approval.user for approval in self.counting}
        expired = [each for each in self.judged if each.standing is Standing.EXPIRED]
        return [each for each in expired if each.approval.user not in again]


def point_of(step_index: int | None) -> str:
    """Return the point of an approval, as a part of a sentence; None is the beginning."""
    return "the beginning" if step_index is None else f"step {step_index + 1}"


def tally(rule: ApprovalRule, given: Iterable[Approval], now_there: Subject, now: datetime) -> Tally:
    """Return the tally of the given approvals, in their order."""
    return Tally(rule, tuple(judge(approval, now_there, now, rule=rule) for approval in given))


def judge(
    approval: Approval, now_there: Subject, now: datetime, *, rule: ApprovalRule | None, over: str = ""
) -> Judged:
    """Return an approval with its present validity.

    Args:
        now_there: the subject of an approval given now.
        rule: the rule there; None without one.
        over: the phase of a rollout that is over; empty while it goes on.
    """
    if approval.withdrawn_at is not None:
        return Judged(approval, Standing.WITHDRAWN)
    if approval.used_at is not None:
        return Judged(approval, Standing.USED)
    why = _changed(approval.subject, now_there) or (f"the rollout is {over}" if over else "") or approval.lost_right
    if not why and rule is None:
        why = "nothing is to be approved there any more"
    if not why and rule is not None and now - approval.given_at >= rule.expires:
        why = f"it was given more than {durations.render(rule.expires)} ago"
    return Judged(approval, Standing.EXPIRED, why) if why else Judged(approval, Standing.COUNTS)


def refusal(
    approver: Approver,
    rule: ApprovalRule,
    authors: Iterable[Author],
    judged: Iterable[Judged],
    demands: Iterable[Demand] = (),
) -> str:
    """Return why a user whose role allows it may not approve; empty where he may.

    Args:
        demands: those on the service's namespace.
    """
    user = approver.username
    if any(each.standing is Standing.COUNTS and each.approval.user == user for each in judged):
        return f"{user} has approved already; {_of_others(rule)}"
    if why := token_refusal(approver, rule, demands):
        return why
    author = next((author for author in authors if author.is_user(user)), None) if rule.four_eyes else None
    if author is None:
        return ""
    return f"{user} {author.did}, and the policy asks for four eyes; somebody else has to approve"


def token_refusal(approver: Approver, rule: ApprovalRule, demands: Iterable[Demand]) -> str:
    """Return why a token neither approves nor rejects under the rule and the demands; empty where it may."""
    return (approver.refusal if rule.is_of_people else "") or signed_in_refusal(approver, demands)


def with_makers(authors: Iterable[Author], makers: Mapping[str, Collection[str]]) -> Iterator[Author]:
    """Yield the authors, and the users who made their tokens for them.

    Args:
        makers: by name of an actor.
    """
    for author in authors:
        yield author
        for maker in sorted(makers.get(author.actor, ())):
            yield Author(maker, f"made the token of {author.actor}, who {author.did}")


def _of_others(rule: ApprovalRule) -> str:
    return "one is all it takes" if rule.approvals == 1 else f"the {rule.approvals} have to be of different people"


def _changed(approved: Subject, now_there: Subject) -> str:
    """Return what differs from what was approved; empty for nothing."""
    differences: Sequence[tuple[bool, str]] = (
        (
            approved.artifact_digest != now_there.artifact_digest,
            f"it was for the artifact {approved.artifact_digest}, and {now_there.artifact_digest} is rolled out now",
        ),
        (
            approved.configuration_digest != now_there.configuration_digest,
            "the configuration of the new revision is not the one that was approved",
        ),
        (approved.policy_digest != now_there.policy_digest, "the policy's text is not the one that was approved"),
        (
            approved.attempt != now_there.attempt,
            f"it was for attempt {approved.attempt}, and this is attempt {now_there.attempt}",
        ),
        (
            approved.step_index != now_there.step_index,
            f"it was for {approved.point}, and the rollout is past that",
        ),
    )
    return next((why for differs, why in differences if differs), "")
