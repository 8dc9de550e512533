"""Runs thousands of rollouts at once through the product's own e-processes. Called by the tests and by `curves`."""

from dataclasses import dataclass

import numpy as np

from benchmarks.analysis.traffic import Maker, Sizes, steps_of
from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.blocks import LEAST_CANARY
from deployments.domain.analysis.evidence.eprocess import Floats, Shares, Wealth
from deployments.domain.analysis.gate import questions_of
from deployments.domain.analysis.measurements.errors import ErrorIncrease, ErrorLimit
from deployments.domain.analysis.measurements.latency import SlowRequests
from deployments.domain.policy import Gate

ShareQuestion = ErrorLimit | ErrorIncrease | SlowRequests


@dataclass(frozen=True, slots=True)
class Bases:
    """What share of requests goes wrong while nothing is the matter, and by how much the canary is worse."""

    server_errors: float = 0.004
    client_errors: float = 0.02
    slow: float = 0.04
    worse_errors: float = 0.0
    worse_slow: float = 0.0


@dataclass(frozen=True, slots=True)
class Ends:
    """Of each run, [runs]: the block in which it was failed (infinite: never) and the canary's requests until then."""

    block: Floats
    requests: Floats

    def failed_by(self, blocks: int) -> Floats:
        """Return [blocks] the share of runs failed until each block."""
        return np.asarray((self.block[None] <= np.arange(blocks)[:, None]).mean(axis=1))


def simulate(
    kind: Maker, bases: Bases, *, runs: int, blocks: int, alpha: float = 0.01, seed: int = 1, sizes: Sizes | None = None
) -> Ends:
    """Return how rollouts by the default gate end under this traffic."""
    random = np.random.default_rng(seed)
    sizes = sizes or steps_of(random, blocks, runs)
    shares = {
        "server": _worse(kind(random, blocks, runs, bases.server_errors), bases.worse_errors),
        "client": kind(random, blocks, runs, bases.client_errors),
        "slow": _worse(kind(random, blocks, runs, bases.slow), bases.worse_slow),
    }
    bad = {
        name: (_draw(random, sizes.canary, of[0]), _draw(random, sizes.stable, of[1])) for name, of in shares.items()
    }
    return judge(bad, sizes, alpha=alpha)


def judge(
    bad: dict[str, tuple[Floats, Floats]], sizes: Sizes, *, alpha: float = 0.01, gate: Gate | None = None
) -> Ends:
    """Return how rollouts end in which so many requests went wrong.

    Args:
        bad: "server", "client" and "slow" -> numbers of canary and of stable, [blocks, runs].
    """
    questions = [each for each in questions_of(gate or Gate()) if isinstance(each, ShareQuestion)]
    blocks, runs = sizes.canary.shape
    wealth: list[Wealth | None] = [None] * len(questions)
    failed_in = np.full(runs, np.inf)
    limit = eprocess.threshold(alpha, len(questions))
    for block in range(blocks):
        taken = sizes.canary[block] >= LEAST_CANARY
        for index, question in enumerate(questions):
            numbers = bad[_KIND_OF[question.metric]]
            sides = [
                _shares(of[block], size[block]) for of, size in zip(numbers, (sizes.canary, sizes.stable), strict=True)
            ]
            factors, value = question.factors(sides[0], sides[1])
            before = wealth[index] or eprocess.fresh(factors.shape[-1], (runs,))
            after = eprocess.bet(before, factors, value, taken)
            failed_in = np.where(eprocess.log_capital(after) >= limit, np.minimum(failed_in, block), failed_in)
            wealth[index] = after
    met = np.cumsum(sizes.canary, axis=0)
    return Ends(failed_in, met[np.minimum(failed_in, blocks - 1).astype(int), np.arange(runs)])


_KIND_OF = {
    "server_errors": "server",
    "server_error_increase": "server",
    "client_error_increase": "client",
    "slow_requests": "slow",
}


def _worse(shares: Floats, by: float) -> Floats:
    shares = shares.copy()
    shares[0] = 1 - (1 - shares[0]) * (1 - by)
    return shares


def _draw(random: np.random.Generator, sizes: Floats, shares: Floats) -> Floats:
    return random.binomial(sizes.astype(int), shares).astype(float)


def _shares(bad: Floats, requests: Floats) -> Shares:
    return Shares(bad / np.maximum(requests, 1), requests)
