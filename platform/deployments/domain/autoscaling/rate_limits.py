"""Rate limits of scaling: the policies of autoscaling/v2, and the recent changes that count against them. Pure.

    limit = number at the begin of the period, and what the policy allows of it

is Kubernetes' ("Scaling policies"): replicas added within the period count against the limit; replicas removed
meanwhile do not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from integrations.clusters.base import Behavior, ScalingPolicy, ScalingRules, Selection, Unit

PERIOD_S = 15
DEFAULT_UP = (ScalingPolicy(Unit.PERCENT, 100, PERIOD_S), ScalingPolicy(Unit.PODS, 4, PERIOD_S))
DEFAULT_DOWN = (ScalingPolicy(Unit.PERCENT, 100, PERIOD_S),)
Moments = tuple[tuple[datetime, int], ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """Past desired numbers and changes.

    Attributes:
        right: moments and the desired number then; each larger than all that follow it.
        low: the same for scaling up; each smaller than all that follow it.
        added, removed: moments and how many replicas were added, or removed, then.
    """

    right: Moments = ()
    low: Moments = ()
    added: Moments = ()
    removed: Moments = ()


def most_now(replicas: int, memory: Memory, rules: ScalingRules, now: datetime) -> int:
    """Return the most replicas allowed at this moment."""
    if rules.select is Selection.DISABLED:
        return replicas
    limits = []
    for policy in rules.policies or DEFAULT_UP:
        before = _before(replicas, memory, policy, now)
        more = policy.value if policy.unit is Unit.PODS else math.ceil(before * policy.value / 100)
        limits.append(before + more)
    return max(replicas, min(limits) if rules.select is Selection.MIN else max(limits))


def least_now(replicas: int, memory: Memory, rules: ScalingRules, now: datetime) -> int:
    """Return the fewest replicas allowed at this moment."""
    if rules.select is Selection.DISABLED:
        return replicas
    limits = []
    for policy in rules.policies or DEFAULT_DOWN:
        before = _before(replicas, memory, policy, now)
        fewer = policy.value if policy.unit is Unit.PODS else math.ceil(before * policy.value / 100)
        limits.append(before - fewer)
    return min(replicas, max(0, max(limits) if rules.select is Selection.MIN else min(limits)))


def longest_period(behavior: Behavior) -> timedelta:
    """Return the longest time for which a change counts."""
    policies = (*(behavior.up.policies or DEFAULT_UP), *(behavior.down.policies or DEFAULT_DOWN))
    return timedelta(seconds=max(policy.period_s for policy in policies))


def _before(replicas: int, memory: Memory, policy: ScalingPolicy, now: datetime) -> int:
    """Return the number of replicas when the policy's period began."""
    return replicas - _lately(memory.added, policy, now) + _lately(memory.removed, policy, now)


def _lately(moments: Sequence[tuple[datetime, int]], policy: ScalingPolicy, now: datetime) -> int:
    return sum(number for at, number in moments if now - at < timedelta(seconds=policy.period_s))
