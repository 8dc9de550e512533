"""Advice on a pool whose memory is too small. Pure.

It says without Prometheus what the alerts FairleadPoolThrashing and FairleadPoolModelNeverFits say with it; counters
are those since the start of the pool's replicas.
"""

from collections.abc import Sequence

from pools.domain.figures import PoolFigures

THRASHING_PERCENT = 20
"""Evictions in 100 requests above which a pool's models do not fit into its memory; as of the alert."""
FEWEST_EVICTIONS = 20
_TOO_LARGE = "too-large"


def advice(figures: PoolFigures, unfit: Sequence[str] = ()) -> list[str]:
    """Return what to change of a pool, a sentence each; nothing where its models fit.

    Args:
        unfit: services whose models are known to be too large, as `namespace/name`.
    """
    found = []
    asked = figures.hits + figures.misses
    if figures.evictions >= FEWEST_EVICTIONS and figures.evictions * 100 > THRASHING_PERCENT * asked:
        share = f" for {100 * figures.evictions / asked:.0f} % of the requests" if asked else ""
        found.append(
            f"Models were evicted {figures.evictions:,} times{share} since the replicas started: the models in use are "
            "larger than the pool's memory. Raise memoryBudget, or minReplicas and maxReplicas."
        )
    failed = figures.load_failures.get(_TOO_LARGE, 0)
    if failed or unfit:
        loads = "1 load" if failed == 1 else f"{failed:,} loads"
        what = f"{loads} failed, since the model" if failed else "The model"
        of = f" of {' and of '.join(unfit)}" if unfit else ""
        found.append(
            f"{what}{of} never fits: it is larger than the memory for models of a replica, or than the cache. Raise "
            "memoryBudget, or apply the service's file without spec.predictor.pool."
        )
    return found
