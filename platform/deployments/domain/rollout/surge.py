"""How stable and canary share replicas in a rollout that may have no more of them than there were. Pure."""

import math


def shared(full: int, percent: int) -> tuple[int, int]:
    """Return how many of `full` replicas stable and the canary have where `percent` of the requests are the canary's.

    The canary has its part, rounded up, and stable the others; each has one at least, as long as requests may come to
    it. A single replica cannot be shared: there are two of them meanwhile.
    """
    canary = max(1, min(full - 1, math.ceil(full * percent / 100)))
    return max(1, full - canary), canary
