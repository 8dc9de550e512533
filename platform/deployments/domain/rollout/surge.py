"""Replica split without surge: stable and canary share the replicas that stable had. Pure."""

import math


def shared(full: int, percent: int) -> tuple[int, int]:
    """Return how many of `full` replicas stable and the canary have where the canary gets `percent` of the requests.

    The canary has its part, rounded up, and stable the rest; each has at least one while requests may reach it. A
    single replica cannot be shared: there are two of them meanwhile.
    """
    canary = max(1, min(full - 1, math.ceil(full * percent / 100)))
    return max(1, full - canary), canary
