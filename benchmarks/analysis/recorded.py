"""Cuts A/A rollouts out of what real runtimes counted (`record`): all replicas are of the same version."""

from pathlib import Path

import numpy as np

from benchmarks.analysis.traffic import Sizes
from deployments.domain.analysis.evidence.eprocess import Floats
from deployments.domain.analysis.evidence.totals import Histogram

RUNS = 200
BLOCK_S = 2
_WEIGHTS = (0.1, 0.25, 0.5)
_EDGE_S = 60  # so long stable alone is looked at before, to fix what is slow


def recorded_rollouts(
    file: Path, *, runs: int = RUNS, blocks: int = 60, extra_slow: float = 0.0, seed: int = 1
) -> tuple[dict[str, tuple[Floats, Floats]], Sizes]:
    """Return what went wrong, and of how many requests, in rollouts of the default steps, as `rollouts.judge` takes it.

    Each rollout begins at a random second of the recording, which goes round, with one replica as the canary. Of its
    requests in a block as many are drawn as its weight would have brought it, without replacement; so the runs of good
    and bad seconds stay as they were. What is slow is fixed from the other replicas before.

    Args:
        extra_slow: this part of the canary's fast requests is made slow.
    """
    random = np.random.default_rng(seed)
    recording = np.load(file)
    counts, edges = recording["counts"].astype(int), tuple(recording["edges_us"].tolist())
    seconds, replicas, _ = counts.shape
    weights = np.repeat(_WEIGHTS, -(-blocks // len(_WEIGHTS)))[:blocks]
    sizes, slow = np.zeros((2, blocks, runs)), np.zeros((2, blocks, runs))
    for run in range(runs):
        start, canary = int(random.integers(seconds)), int(random.integers(replicas))
        turned = np.roll(counts, -start, axis=0)
        others = np.delete(turned, canary, axis=1).sum(axis=1)
        edge = Histogram(edges, tuple(others[:_EDGE_S].sum(axis=0).tolist())).edge_of(0.95) or edges[-1]
        is_slow = np.append(np.array(edges) > edge, True)
        for block, weight in enumerate(weights):
            at = slice(_EDGE_S + block * BLOCK_S, _EDGE_S + (block + 1) * BLOCK_S)
            own, rest = turned[at, canary].sum(axis=0), others[at].sum(axis=0)
            wanted = int(random.binomial(own.sum() + rest.sum(), weight))
            drawn = random.multivariate_hypergeometric(own, min(wanted, own.sum()))
            made_slow = random.binomial(drawn[~is_slow].sum(), extra_slow)
            sizes[:, block, run] = drawn.sum(), rest.sum()
            slow[:, block, run] = drawn[is_slow].sum() + made_slow, rest[is_slow].sum()
    none = np.zeros_like(slow[0])
    bad = {"server": (none, none), "client": (none, none), "slow": (slow[0], slow[1])}
    return bad, Sizes(sizes[0], sizes[1])
