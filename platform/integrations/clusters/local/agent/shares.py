"""Weights over what is ready. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """What one revision was given and how many replicas of it take requests."""

    revision: str
    weight_percent: int
    ready_replicas: int


def shares(claims: Sequence[Claim]) -> dict[str, int]:
    """Return the percentage each revision gets; they sum to 100, or are all 0 where nothing can serve.

    A revision without ready replicas gets nothing and the others share its part in proportion to theirs. One with
    weight 0 gets nothing, even when it alone is ready: nobody decided that clients may see it.
    """
    able = {
        claim.revision: claim.weight_percent for claim in claims if claim.ready_replicas and claim.weight_percent > 0
    }
    total = sum(able.values())
    result = {claim.revision: 0 for claim in claims}
    if not total:
        return result
    result.update({revision: weight * 100 // total for revision, weight in able.items()})
    # Largest remainder: whole percents that sum to 100, each as near to its part as can be.
    by_remainder = sorted(able, key=lambda revision: (-(able[revision] * 100 % total), revision))
    for revision in by_remainder[: 100 - sum(result.values())]:
        result[revision] += 1
    return result


def explanation(claims: Sequence[Claim]) -> str:
    """Return one sentence on whose weight goes elsewhere; empty where all get what they were given."""
    without = [claim for claim in claims if claim.weight_percent and not claim.ready_replicas]
    if not without:
        return ""
    names = ", ".join(f"{claim.revision} ({claim.weight_percent} %)" for claim in without)
    if any(shares(claims).values()):
        return f"no replica is ready of {names}; the requests go to the other revisions"
    return f"no replica is ready of {names}; requests are refused until one is"
