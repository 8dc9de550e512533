"""Simulated traffic for whole rollouts: what share of each side's requests goes wrong in each block of time.

Five kinds, in all of which a canary can be as good as stable and yet look bad for a while:

- independent: nothing but chance.
- shared outages: both sides fail together, for ten seconds or so.
- bursts of one side: four requests in ten go wrong for some seconds, on either side at its own times.
- long pauses of one side: all of them do, for six seconds and often longer, as when the only replica stands still.
- autocorrelated: each side's share wanders by itself (an autoregression of its logarithm, 0.8 from block to block).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from deployments.domain.analysis.evidence.eprocess import Floats

Maker = Callable[[np.random.Generator, int, int, float], Floats]


def independent(_random: np.random.Generator, blocks: int, runs: int, base: float) -> Floats:
    """Return [2, blocks, runs]: the share of canary and stable is the same all the time."""
    return np.full((2, blocks, runs), base)


def shared_outages(random: np.random.Generator, blocks: int, runs: int, base: float) -> Floats:
    """Return [2, blocks, runs]: once in 200 s on average half of all requests go wrong for 10 s."""
    on = _on_and_off(random, blocks, runs, begins=0.01, blocks_long=5.0)
    return np.repeat(np.where(on, max(base, 0.5), base)[None], 2, axis=0)


def bursts_of_one_side(random: np.random.Generator, blocks: int, runs: int, base: float) -> Floats:
    """Return [2, blocks, runs]: half of a side's bad requests come in bursts in which 40 % are bad, two blocks long."""
    return _bursts(random, blocks, runs, base, share=0.4, blocks_long=2.0)


def long_pauses_of_one_side(random: np.random.Generator, blocks: int, runs: int, base: float) -> Floats:
    """Return [2, blocks, runs]: half of a side's bad requests come in pauses in which all are, three blocks long."""
    return _bursts(random, blocks, runs, base, share=1.0, blocks_long=3.0)


def _bursts(
    random: np.random.Generator, blocks: int, runs: int, base: float, *, share: float, blocks_long: float
) -> Floats:
    begins = 0.5 * base / share / blocks_long
    sides = [_on_and_off(random, blocks, runs, begins=begins, blocks_long=blocks_long) for _ in range(2)]
    return np.where(np.stack(sides), share, 0.5 * base)


def autocorrelated(random: np.random.Generator, blocks: int, runs: int, base: float) -> Floats:
    """Return [2, blocks, runs] with the mean `base`."""
    kept, spread = 0.8, 0.8
    level = random.normal(size=(2, runs)) * spread
    shares = np.empty((2, blocks, runs))
    for block in range(blocks):
        level = kept * level + np.sqrt(1 - kept**2) * spread * random.normal(size=(2, runs))
        shares[:, block] = base * np.exp(level - spread**2 / 2)
    return shares.clip(0.0, 1.0)


KINDS: Mapping[str, Maker] = {
    "independent": independent,
    "shared outages": shared_outages,
    "bursts of one side": bursts_of_one_side,
    "long pauses of one side": long_pauses_of_one_side,
    "autocorrelated": autocorrelated,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Requests of each side in each block, [blocks, runs] each."""

    canary: Floats
    stable: Floats


def steps_of(
    random: np.random.Generator, blocks: int, runs: int, *, per_block: int = 60, weights: tuple[int, ...] = (10, 25, 50)
) -> Sizes:
    """Return the sizes where the canary's weight rises in even steps."""
    weight = np.repeat(np.array(weights) / 100, -(-blocks // len(weights)))[:blocks, None]
    canary = random.binomial(per_block, np.broadcast_to(weight, (blocks, runs))).astype(float)
    return Sizes(canary, per_block - canary)


def _on_and_off(random: np.random.Generator, blocks: int, runs: int, *, begins: float, blocks_long: float) -> Floats:
    on, rows = np.zeros(runs, dtype=bool), []
    for _ in range(blocks):
        on = np.where(on, random.random(runs) < 1 - 1 / blocks_long, random.random(runs) < begins)
        rows.append(on)
    return np.stack(rows)
