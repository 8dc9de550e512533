"""Shards: which controller has which cluster, by rendezvous hashing with a limit. Pure.

Each controller works it out for itself from the same tables. A cluster has a score with each controller, by a hash of
both; the highest scores come first, and a controller takes as many clusters as its share is at most. One controller
more or less moves few clusters but those that are its own.
"""

import hashlib
from collections import Counter
from collections.abc import Collection
from math import ceil


def shard(controller: str, *, controllers: Collection[str], clusters: Collection[int]) -> set[int]:
    """Return the clusters of one controller; none where it is not among `controllers`."""
    return {cluster for cluster, its in assigned(controllers, clusters).items() if its == controller}


def assigned(controllers: Collection[str], clusters: Collection[int]) -> dict[int, str]:
    """Return each cluster's controller; no controller has more than its equal share, rounded up."""
    if not controllers:
        return {}
    most = ceil(len(clusters) / len(controllers))
    found: dict[int, str] = {}
    taken: Counter[str] = Counter()
    for _, cluster, controller in sorted(((_score(c, k), k, c) for c in controllers for k in clusters), reverse=True):
        if cluster not in found and taken[controller] < most:
            found[cluster] = controller
            taken[controller] += 1
    return found


def _score(controller: str, cluster: int) -> bytes:
    return hashlib.blake2b(f"{cluster} {controller}".encode(), digest_size=8).digest()
