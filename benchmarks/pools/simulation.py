"""100,000 models in a pool, simulated: hits, loads and evictions with the runtime's own bookkeeping and Envoy's hash.

    python -m benchmarks.pools.simulation [--models 100000] [--replicas 8] [--requests 2000000] [--check]

Models have sizes from 1 to 16 MiB and a Zipf load. A request goes where Envoy's Maglev table says (`maglev`); a replica
loads and unloads by the runtime's `Budget` and `LeastRecentlyUsed`. Loads take no time here. Then hot models get copies
by the control plane's own decision, where all replicas together are as busy as half of them can be. At last, without
copies, one replica more comes, and one goes: the rows of the requests that follow show what that costs. `--check` first
asks a running Envoy for 2,000 names, and compares.
"""

import argparse
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from benchmarks.pools.envoy_hash import differences
from deployments.domain.autoscaling.model_copies import ModelLoad, allotted, required
from integrations.clusters.local.envoy import maglev
from integrations.clusters.local.envoy.pools import homes
from serving_runtime.engine.memory.budget import Budget, Claim
from serving_runtime.engine.memory.least_recently_used import LeastRecentlyUsed

_MIB = 1 << 20
_SMALLEST_MIB, _LARGEST_MIB = 1, 16
_SHARES = (0.02, 0.05, 0.1, 0.2)
"""Memory of all replicas together as shares of the memory of all models."""
_ZIPF = (0.8, 1.0, 1.2)
_CHANGE = 20_000
"""Requests after a change of the replicas that are counted."""
_BUSY = 0.5
"""Load of a replica in the mean, in seconds of computation per second."""


class Replica:
    """One replica's models in memory."""

    def __init__(self, budget_bytes: int, names: Sequence[str], sizes: np.ndarray) -> None:
        self._budget = Budget(budget_bytes)
        self._sizes = sizes
        self._names = names
        self._claims: dict[int, Claim] = {}
        self._used: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._order = LeastRecentlyUsed(self._used.__getitem__, lambda _: True, lambda _: False)
        self.requests = self.loads = self.evictions = 0

    def ask(self, model: int, now: int) -> None:
        """Take a request; a model that is not in memory is loaded for it."""
        self.requests += 1
        name = self._names[model]
        self._used[name] = now
        if model in self._claims:
            return
        self.loads += 1
        size_bytes = int(self._sizes[model])
        while self._budget.lacking(size_bytes) > 0:
            self._evict()
        self._claims[model] = self._budget.claim(name, size_bytes)
        self._numbers[name] = model
        self._order.add(name)

    def _evict(self) -> None:
        name = self._order.first()
        assert name is not None, "every model is smaller than the budget"
        self._order.discard(name)
        self._budget.release(self._claims.pop(self._numbers.pop(name)))
        del self._used[name]
        self.evictions += 1


class Counted(NamedTuple):
    """What some requests came to.

    Attributes:
        hits: the share whose model was in memory.
        loads, evictions: for each thousand requests.
        busiest: requests of the replica with most, as a ratio to the mean.
    """

    hits: float
    loads: float
    evictions: float
    busiest: float


class Pool:
    """A pool's replicas behind a gateway."""

    def __init__(self, replicas: int, budget_bytes: int, names: Sequence[str], sizes: np.ndarray) -> None:
        self._addresses = count(1)
        self._make = lambda: Replica(budget_bytes, names, sizes)
        self._names, self._sizes, self._budget_bytes = names, sizes, budget_bytes
        self._hashes = np.array([maglev.xxh64(name.encode()) for name in names], np.uint64)
        self._now = 0
        self.replicas: dict[str, Replica] = {}
        self.places = np.empty(0, np.int32)
        self._copies: dict[int, list[int]] = {}
        self._random = random.Random(1)
        for _ in range(replicas):
            self.add()

    def add(self) -> None:
        """Start a replica more."""
        self.replicas[f"10.64.0.{next(self._addresses)}:8000"] = self._make()
        self._place()

    def kill(self) -> None:
        """End a replica."""
        self.replicas.pop(next(iter(self.replicas)))
        self._place()

    def homes(self) -> list[str]:
        """Return the replica of each model."""
        addresses = list(self.replicas)
        return [addresses[number] for number in self.places]

    def send(self, models: np.ndarray) -> Counted:
        """Send requests for these models."""
        before = [(each.requests, each.loads, each.evictions) for each in self.replicas.values()]
        replicas = list(self.replicas.values())
        for model in models.tolist():
            self._now += 1
            copies = self._copies.get(model)
            home = self.places[model] if copies is None else self._random.choice(copies)
            replicas[home].ask(model, self._now)
        after = [(each.requests, each.loads, each.evictions) for each in self.replicas.values()]
        requests, loads, evictions = (np.subtract(after, before)).T
        total = int(requests.sum())
        thousand = 1000 / total
        return Counted(
            1 - loads.sum() / total,
            loads.sum() * thousand,
            evictions.sum() * thousand,
            requests.max() / requests.mean(),
        )

    def copy(self, requests: np.ndarray) -> Mapping[str, int]:
        """Have hot models answered by several replicas, by the load of these requests, and return their copies."""
        models, counts = np.unique(requests, return_counts=True)
        second = _BUSY * len(self.replicas) / len(requests)
        loads = {
            self._names[model]: ModelLoad(count * second, int(self._sizes[model]))
            for model, count in zip(models.tolist(), counts.tolist(), strict=True)
        }
        found = allotted(required(loads, len(self.replicas)), loads, len(self.replicas), self._budget_bytes)
        addresses = list(self.replicas)
        for model in models.tolist():
            if (copies := found.get(name := self._names[model])) is not None:
                namespace, service = name.rsplit("/", 1)
                self._copies[model] = list(homes(namespace, service, addresses, copies).values())
        return found

    def leave_one(self) -> None:
        """Have each model answered by one replica again."""
        self._copies.clear()

    def _place(self) -> None:
        places = np.array(maglev.table(list(self.replicas)), np.int32)
        self.places = places[(self._hashes % np.uint64(len(places))).astype(np.int64)]


def rows(models: int, replicas: int, requests: int, seed: int) -> Iterator[str]:
    """Yield a table of what each memory and load comes to."""
    chance = np.random.default_rng(seed)
    names = [f"/serving/team-{number % 97}/model-{number}" for number in range(models)]
    sizes = (np.exp(chance.uniform(np.log(_SMALLEST_MIB), np.log(_LARGEST_MIB), models)) * _MIB).astype(np.int64)
    columns = ["Zipf", "memory", "hits", "loads of 1,000", "busiest replica", "copies of hot models", "hits with them"]
    columns += ["busiest replica then", "one more: moved", "hits then"]
    yield f"| {' | '.join([*columns, 'one less: hits then'])} |"
    yield "| ---: " * (len(columns) + 1) + "|"
    for exponent in _ZIPF:
        chances = 1 / np.arange(1, models + 1) ** exponent
        chances /= chances.sum()
        order = chance.permutation(models)
        for share in _SHARES:
            pool = Pool(replicas, int(sizes.sum() * share / replicas), names, sizes)
            pool.send(order[chance.choice(models, requests // 2, p=chances)])  # until memory is full
            steady = pool.send(order[chance.choice(models, requests // 2, p=chances)])
            latest = order[chance.choice(models, requests // 10, p=chances)]
            copies = pool.copy(latest)
            pool.send(latest)
            copied = pool.send(order[chance.choice(models, requests // 2, p=chances)])
            pool.leave_one()
            before = pool.homes()
            pool.add()
            moved = sum(was != now for was, now in zip(before, pool.homes(), strict=True)) / models
            more = pool.send(order[chance.choice(models, _CHANGE, p=chances)])
            pool.kill()
            less = pool.send(order[chance.choice(models, _CHANGE, p=chances)])
            cells = [
                f"{exponent:g}",
                f"{share:.0%}",
                f"{steady.hits:.1%}",
                f"{steady.loads:.1f}",
                f"{steady.busiest:.2f}",
            ]
            further = " ".join(map(str, sorted(copies.values(), reverse=True)))
            cells += [further or "none", f"{copied.hits:.1%}", f"{copied.busiest:.2f}"]
            cells += [f"{moved:.1%}", f"{more.hits:.1%}", f"{less.hits:.1%}"]
            yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--requests", type=int, default=2_000_000, help="for each row; the first half fills the memory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="compare the hash with a running Envoy first")
    options = parser.parse_args()
    if options.check:
        wrong = differences(options.replicas)
        print(f"Envoy sends {len(wrong)} of 2,000 names elsewhere{': ' + wrong[0] if wrong else ''}", flush=True)
    began = time.monotonic()
    for row in rows(options.models, options.replicas, options.requests, options.seed):
        print(row, flush=True)
    print(f"{options.models:,} models on {options.replicas} replicas, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
