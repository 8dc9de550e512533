"""How fast a number of replicas may change: the policies of autoscaling/v2, and what was changed lately. Pure.

    limit = number at the begin of the period, and what the policy allows of it

is Kubernetes' ("Scaling policies"): what was added within the period counts against what may be added, and what was
taken away meanwhile does not.
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
    """What was right, and what was changed, before.

    Attributes:
        right: moments and the number that was right then; each larger than all that follow it.
        low: the same for scaling up; each smaller than all that follow it.
        added, removed: moments and how many replicas were added, or taken away, then.
    """

    right: Moments = ()
    low: Moments = ()
    added: Moments = ()
    removed: Moments = ()


def most_now(replicas: int, memory: Memory, rules: ScalingRules, now: datetime) -> int:
    """Return up to how many replicas there may be at this moment."""
    if rules.select is Selection.DISABLED:
        return replicas
    limits = []
    for policy in rules.policies or DEFAULT_UP:
        before = _before(replicas, memory, policy, now)
        more = policy.value if policy.unit is Unit.PODS else math.ceil(before * policy.value / 100)
        limits.append(before + more)
    return max(replicas, min(limits) if rules.select is Selection.MIN else max(limits))


def least_now(replicas: int, memory: Memory, rules: ScalingRules, now: datetime) -> int:
    """Return down to how many replicas there may be at this moment."""
    if rules.select is Selection.DISABLED:
        return replicas
    limits = []
    for policy in rules.policies or DEFAULT_DOWN:
        before = _before(replicas, memory, policy, now)
        fewer = policy.value if policy.unit is Unit.PODS else math.ceil(before * policy.value / 100)
        limits.append(before - fewer)
    return min(replicas, max(0, max(limits) if rules.select is Selection.MIN else min(limits)))


def longest_period(behavior: Behavior) -> timedelta:
    """Return for how long a change counts at most."""
    policies = (*(behavior.up.policies or DEFAULT_UP), *(behavior.down.policies or DEFAULT_DOWN))
    return timedelta(seconds=max(policy.period_s for policy in policies))


def _before(replicas: int, memory: Memory, policy: ScalingPolicy, now: datetime) -> int:
    """Return how many there were when the policy's period began."""
    return replicas - _lately(memory.added, policy, now) + _lately(memory.removed, policy, now)


def _lately(moments: Sequence[tuple[datetime, int]], policy: ScalingPolicy, now: datetime) -> int:
    return sum(number for at, number in moments if now - at < timedelta(seconds=policy.period_s))
