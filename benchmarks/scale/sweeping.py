"""The worker's sweep over all services, a hundred of which are rolled out."""

import statistics
import time
from dataclasses import dataclass

from django.conf import settings

from benchmarks.scale.asking import counted_queries, processor_s
from benchmarks.scale.outside import Counters, OutsideCluster
from clusters.services import connection
from deployments import tasks
from deployments.reconcile.reconciler import Outcome
from deployments.turns import sweep

SWEEPS = 3


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep took: ticks, queries and milliseconds of processors, medians."""

    ticks: int
    queries: int
    processor_ms: float


def sweeps(cluster: OutsideCluster, counters: Counters) -> Swept:
    """Return what a sweep takes, of some that follow each other as in a worker."""
    connection.driver_of = lambda _cluster: cluster  # type: ignore[assignment]
    sweep.counters.collect = counters
    sweep._BUDGET_S = float("inf")  # what one sweep has to do is to be measured, not how much of it fits
    found = []
    for _ in range(SWEEPS + 1):
        with _Ticks() as ticks, counted_queries() as queries:
            began = processor_s()
            tasks.sweep()
            taken = processor_s() - began
        found.append((ticks.count, queries.count, 1000 * taken))
        cluster.settle_applied()
        time.sleep(settings.RECONCILE_INTERVAL_S)
    ticked, asked, taken_ms = (statistics.median(column) for column in zip(*found[1:], strict=True))
    return Swept(int(ticked), int(asked), round(taken_ms, 1))


class _Ticks:
    """Counts the ticks that were done."""

    def __enter__(self) -> "_Ticks":
        self.count = 0
        self._tick = sweep.turn

        def counted(*args: object) -> Outcome | None:
            outcome = self._tick(*args)  # type: ignore[arg-type]
            if outcome is not Outcome.DONE:
                raise RuntimeError(f"a tick ended {outcome}")
            self.count += 1
            return outcome

        sweep.turn = counted
        return self

    def __exit__(self, *_: object) -> None:
        sweep.turn = self._tick
