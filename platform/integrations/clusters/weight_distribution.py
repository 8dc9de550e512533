"""Traffic weight distribution over ready revisions, which drivers share. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One revision's weight, the number of its replicas that take requests, and whether any ever did."""

    revision: str
    weight_percent: int
    ready_replicas: int
    was_ready: bool = False


def shares(claims: Sequence[Claim]) -> dict[str, int]:
    """Return the percentage each revision gets; they sum to 100, or are all 0 where nothing can serve.

    A revision without ready replicas gets nothing and the others share its part in proportion to theirs. One with
    weight 0 gets nothing, even when it alone is ready: it is not released to clients.
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


def is_first_start(claims: Sequence[Claim]) -> bool:
    """Return whether all revisions with weight have yet to be ready for the first time.

    Requests then stay where they were. Once one was ready they do not go back by themselves: the previous revisions may
    have lost them for a reason.
    """
    given = [claim for claim in claims if claim.weight_percent]
    return bool(given) and not any(claim.was_ready or claim.ready_replicas for claim in given)


def explanation(claims: Sequence[Claim], *, served: bool) -> str:
    """Return one sentence on weights that go elsewhere, or nowhere unless `served`; empty where all get theirs."""
    without = [claim for claim in claims if claim.weight_percent and not claim.ready_replicas]
    if not without:
        return ""
    names = ", ".join(f"{claim.revision} ({claim.weight_percent} %)" for claim in without)
    if served:
        return f"no replica is ready of {names}; the requests go to the other revisions"
    return f"no replica is ready of {names}; requests are refused until one is"
