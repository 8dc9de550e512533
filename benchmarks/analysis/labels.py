"""Simulates rollouts gated on quality by the thousand: labels that come late, that are missing, in bursts, by slices.

Losses of each scorer as its own distribution, requests in cells of two seconds, blocks that close as the product's do,
and the product's own bets. `label_figures` prints the figures of docs/reference/analysis.md; the tests call it too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.analysis import traffic
from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.blocks import LEAST_CANARY, LEAST_STABLE
from deployments.domain.analysis.evidence.eprocess import Floats, Shares
from deployments.domain.analysis.evidence.quality_bets import quality_factors

BASELINE = 1000
Draw = Callable[[np.random.Generator, tuple[int, ...], float], Floats]


def _right_or_wrong(wrong: float) -> Draw:
    def draw(random: np.random.Generator, shape: tuple[int, ...], worse: float) -> Floats:
        return (random.random(shape) < wrong + worse).astype(float)

    return draw


def _shifted(of: Callable[[np.random.Generator, tuple[int, ...]], Floats]) -> Draw:
    """Return draws that are worse by the same in each answer, which spreads the canary's losses least."""

    def draw(random: np.random.Generator, shape: tuple[int, ...], worse: float) -> Floats:
        return np.minimum(of(random, shape) + worse, 1.0)

    return draw


def _costs(random: np.random.Generator, shape: tuple[int, ...], worse: float) -> Floats:
    luck = random.random(shape)
    return np.where(luck < 0.01 + worse, 1.0, np.where(luck < 0.1 + worse, 0.2, 0.0))


@dataclass(frozen=True, slots=True)
class Scored:
    """The losses of one scorer: of stable, and of a canary whose mean loss is worse by so much."""

    draw: Draw
    limit: float
    is_graded: bool = True


SCORERS: Mapping[str, Scored] = {
    "accuracy": Scored(_right_or_wrong(0.05), 0.02, is_graded=False),
    "topK": Scored(_right_or_wrong(0.01), 0.01, is_graded=False),
    "logLoss": Scored(_shifted(lambda random, shape: np.minimum(random.exponential(0.06, shape), 1.0)), 0.02),
    "brier": Scored(_shifted(lambda random, shape: random.beta(0.3, 5.7, shape)), 0.02),
    "absoluteError": Scored(_shifted(lambda random, shape: np.abs(random.normal(0, 0.12, shape)).clip(0, 1)), 0.02),
    "squaredError": Scored(_shifted(lambda random, shape: np.minimum(random.normal(0, 0.2, shape) ** 2, 1.0)), 0.02),
    "costMatrix": Scored(_costs, 0.02),
    "reward": Scored(_shifted(lambda random, shape: random.beta(2.0, 2.0, shape)), 0.05),
}  # fmt: skip


def uneven(random: np.random.Generator, shape: tuple[int, ...], worse: float) -> Floats:
    """Return losses with the mean 0.05, all or nothing on the side of stable, and all the same of a canary."""
    if not worse:
        return (random.random(shape) < 0.05).astype(float)
    return np.full(shape, 0.05 + worse)


@dataclass(frozen=True, slots=True)
class Labels:
    """How labels come.

    Attributes:
        canary, stable: requests of each side in two seconds, on average.
        due: the share of the labels that comes within the horizon; what comes later is left out.
        labelled: share of the answers that get a label at all, of each side: of those that are right, and wrong.
        shares: makes the shares of wrong answers over time, [2, cells, runs]; None for the scorer's own losses.
        paired: both sides answer the same requests, this share of them alike; None where each answers its own.
        slices: so many values of a parameter, each as frequent, are judged apart.
    """

    canary: float = 6.0
    stable: float = 54.0
    due: float = 0.9
    labelled: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shares: traffic.Maker | None = None
    paired: float | None = None
    slices: int = 0


@dataclass(frozen=True, slots=True)
class LabelEnds:
    """Of each run: the cell in which it was failed (infinite: never), and the canary's labels until then."""

    cell: Floats
    labels: Floats

    @property
    def failed(self) -> float:
        """Return the share of runs that failed."""
        return float(np.isfinite(self.cell).mean())


@dataclass
class _Open:
    """Labels and losses of the open block, [runs, parts] of each side."""

    labels: Floats
    losses: Floats


def rollouts(
    scorer: Scored,
    labels: Labels,
    *,
    worse: float,
    runs: int,
    cells: int = 300,
    alpha: float = 0.01,
    measurements: int = 1,
    seed: int = 1,
) -> LabelEnds:
    """Return how rollouts end whose canary's mean loss is worse by so much."""
    random = np.random.default_rng(seed)
    parts = 1 + labels.slices
    wealth = eprocess.fresh(eprocess.INCREASE_BETTORS, (runs, parts))
    level = eprocess.threshold(alpha, measurements) + np.log(parts)
    known = scorer.draw(random, (runs, BASELINE), 0.0)
    before = _Before(np.full((runs, parts), 0.0), np.zeros((runs, parts)), np.zeros((runs, parts)))
    before.count[:, 0], before.total[:, 0], before.squares[:, 0] = BASELINE, known.sum(1), (known**2).sum(1)
    shares = None if labels.shares is None else labels.shares(random, cells, runs, 0.05)
    canary, stable = (_Open(np.zeros((runs, parts)), np.zeros((runs, parts))) for _ in range(2))
    squares = np.zeros((runs, parts))
    ended, seen, needed = np.full(runs, np.inf), np.zeros(runs), np.zeros(runs)
    for cell in range(cells):
        share = None if shares is None else shares[:, cell]
        drawn = _cell(random, scorer, labels, worse, runs, share)
        for side, (count, loss, square) in zip((canary, stable), drawn, strict=True):
            side.labels += count
            side.losses += loss
            if side is stable:
                squares += square
        seen += drawn[0][0][:, 0]
        least = LEAST_CANARY if labels.paired is not None else LEAST_STABLE
        closes = (canary.labels[:, 0] >= LEAST_CANARY) & (stable.labels[:, 0] >= least)
        sides = [Shares(side.losses / np.maximum(side.labels, 1), side.labels) for side in (canary, stable)]
        factors, value = quality_factors(
            sides[0], sides[1], scorer.limit, is_graded=scorer.is_graded, known=before.count,
            mean=before.mean, variance=before.variance,
        )  # fmt: skip
        taken = closes[:, None] & (canary.labels > 0) & (stable.labels > 0)
        wealth = eprocess.bet(wealth, factors, value, taken)
        before.add(closes, stable, squares)
        squares = np.where(closes[:, None], 0.0, squares)
        for side in (canary, stable):
            side.labels = np.where(closes[:, None], 0.0, side.labels)
            side.losses = np.where(closes[:, None], 0.0, side.losses)
        fails = (eprocess.log_capital(wealth) >= level).any(axis=1) & np.isinf(ended)
        ended[fails], needed[fails] = cell, seen[fails]
    return LabelEnds(ended, np.where(np.isfinite(ended), needed, np.inf))


@dataclass
class _Before:
    """Stable's labels before a block: how many, and the sums of their losses and of the squares."""

    count: Floats
    total: Floats
    squares: Floats

    @property
    def mean(self) -> Floats:
        return np.asarray(self.total / np.maximum(self.count, 1))

    @property
    def variance(self) -> Floats:
        return np.asarray(np.maximum(self.squares / np.maximum(self.count, 1) - self.mean**2, 0.0))

    def add(self, closes: np.ndarray, stable: _Open, squares: Floats) -> None:
        self.count += np.where(closes[:, None], stable.labels, 0.0)
        self.total += np.where(closes[:, None], stable.losses, 0.0)
        self.squares += np.where(closes[:, None], squares, 0.0)


_Sums = tuple[Floats, Floats, Floats]


def _cell(
    random: np.random.Generator, scorer: Scored, labels: Labels, worse: float, runs: int, share: Floats | None
) -> tuple[_Sums, _Sums]:
    """Return labels, losses and squares of both sides' requests in two seconds, [runs, parts] each."""
    sizes = [random.poisson(mean, runs) for mean in (labels.canary, labels.stable)]
    if labels.paired is not None:
        sizes[1] = sizes[0]
    most = max(int(each.max()) for each in sizes)
    slots = np.arange(most)[None]
    group = random.integers(1, labels.slices + 1, (2, runs, most)) if labels.slices else None
    # Of pairs that part is answered alike, so the canary is worse by more on the rest.
    alike = random.random((runs, most)) < (labels.paired or 0.0)
    more = (worse / (1 - (labels.paired or 0.0)), 0.0)
    both = [
        scorer.draw(random, (runs, most), more[side])
        if share is None
        else (random.random((runs, most)) < share[side][:, None] + more[side]).astype(float)
        for side in range(2)
    ]
    both[0] = np.where(alike, both[1], both[0])
    there = [(slots < size[:, None]) & (random.random((runs, most)) < labels.due) for size in sizes]
    if labels.paired is not None:
        there[0] = there[1] = there[0] & there[1]
    sums: list[_Sums] = []
    for name, losses, counted in zip(("canary", "stable"), both, there, strict=True):
        right, wrong = labels.labelled.get(name, (1.0, 1.0))
        is_told = random.random((runs, most)) < right + (wrong - right) * losses
        sums.append(_parted(losses, counted & is_told, None if group is None else group[len(sums)], labels.slices))
    return sums[0], sums[1]


def _parted(losses: Floats, counted: np.ndarray, group: np.ndarray | None, slices: int) -> _Sums:
    kinds = (counted.astype(float), losses * counted, losses**2 * counted)
    wholes = [each.sum(axis=1) for each in kinds]
    rows = [
        [whole, *(np.where(group == number, each, 0.0).sum(axis=1) for number in range(1, slices + 1))]
        for whole, each in zip(wholes, kinds, strict=True)
    ]
    labels, loss, squares = (np.stack(each, axis=1) for each in rows)
    return labels, loss, squares
