"""Own replicas of a service in a pool: sustained load earns them, and they go when it is quiet. Pure.

                 its load in the pool fills a replica for `sustained_of`
    pool answers ------------------------------------------------------> own replicas
         ^                                                                    |
         '---- one replica, no request for `scale_to_zero.quiet_of` ----------'

The load in a pool is the sum over the pool's replicas, whose pages count each model's requests.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from deployments.domain.autoscaling.replica_count import Reading
from deployments.domain.service_file.scaling import ScaleMetric, Scaling
from integrations.clusters.base import Behavior

SUSTAINED = timedelta(seconds=30)
SHORTEST_SUSTAINED = timedelta(seconds=5)
"""Counters are read every few seconds."""


def sustained_of(behavior: Behavior) -> timedelta:
    """Return how long the load must have filled a replica: the window of scaling up, where the file has one."""
    said = behavior.up.window_s
    return SUSTAINED if said is None else max(SHORTEST_SUSTAINED, timedelta(seconds=said))


def demand(readings: Sequence[Reading]) -> float:
    """Return how many replicas the load fills at its target, by the metric that asks for most; 0 while unknown."""
    return max((_filled(each) for each in readings), default=0.0)


def busy_since(before: float | None, filled: float, now: datetime) -> float | None:
    """Return since when the load has filled a replica, Unix seconds; None while it does not.

    Args:
        before: the same at the last look.
    """
    if filled < 1:
        return None
    return now.timestamp() if before is None else before


def earned(since: float | None, filled: float, scaling: Scaling, now: datetime) -> int:
    """Return how many own replicas the load has earned; 0 where it has not lasted."""
    if since is None or now.timestamp() - since < sustained_of(scaling.behavior).total_seconds():
        return 0
    return scaling.within(math.ceil(filled))


def _filled(reading: Reading) -> float:
    if reading.value is None:
        return 0.0
    # A wait in the queue is no amount that replicas share.
    shared = 1 if reading.metric == ScaleMetric.QUEUE_TIME else reading.measured
    return reading.value * shared / reading.target
