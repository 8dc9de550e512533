"""Metrics pages of a pool's replicas, and a cluster that has them."""

from collections.abc import Mapping

from integrations.clusters.base import Observed, ObservedReplica, ObservedRevision, ReplicaPhase
from serving_runtime.pools.metrics import PoolCounts
from serving_runtime.telemetry.metrics.families import Family
from serving_runtime.telemetry.metrics.text import render
from tests.deployments._support.fakes import FakeCluster

MIB = 1 << 20


def counts(requests: int, misses: int, *loads_s: float, of: str = "default.another@3") -> PoolCounts:
    """Return the counters of a replica, whose loads were all of one version."""
    made = PoolCounts()
    made.requests, made.misses = requests, misses
    for took_s in loads_s:
        made.loaded(of, took_s)
    return made


def page(
    counted: PoolCounts, memory: Mapping[tuple[str, str], int], *, waiting: int = 0, limit_bytes: int = 1000
) -> str:
    """Return a page as a runtime writes it; `memory` is in bytes, by model and version."""
    of_models = [({"model": model, "version": version}, value) for (model, version), value in memory.items()]
    requests = [({"model": model, "version": version}, 7.0) for model, version in memory]
    families = [
        *counted.families(
            loaded_models=len(memory), used_bytes=sum(memory.values()), limit_bytes=limit_bytes, waiting=waiting
        ),
        Family("fairlead_model_memory_bytes", "gauge", "Memory", list(of_models)),
        Family("nv_inference_request_success", "counter", "Requests", list(requests)),
        Family("nv_inference_count", "counter", "Rows", list(requests)),
    ]
    return render(families).decode()


class PoolCluster(FakeCluster):
    """A cluster whose pool has replicas with these pages, by their names."""

    def __init__(self, pages: Mapping[str, str], pool: str = "warm") -> None:
        super().__init__()
        self._pages = pages
        replicas = tuple(ObservedReplica(name, ReplicaPhase.READY, metrics_url="http://127.0.0.1:1") for name in pages)
        revision = ObservedRevision(f"{pool}-00001", 100, replicas, is_pool=True)
        self.observed[("default", pool)] = Observed("default", pool, 1, (revision,))

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:
        super().metrics_page(namespace, replica)
        return self._pages[replica.name]


def thrashing() -> PoolCluster:
    """Return a pool of one replica that is too small: nearly half of its requests evict, and a model never fits."""
    small = counts(1000, 480, *[0.3] * 470)
    small.evictions = 465
    for _ in range(3):
        small.failed("too-large")
    return PoolCluster({"warm-00001-0": page(small, {("default.pooled", "1"): 900 * MIB}, limit_bytes=1024 * MIB)})


def busy() -> PoolCluster:
    """Return a pool of two replicas: 1,500 requests, a corrupt model, and evictions."""
    first, second = counts(1000, 100, *[0.08] * 99, 2.0), counts(500, 20, *[0.05] * 20)
    first.failed("corrupt")
    first.evictions = 40
    both = {("default.pooled", "1"): 180 * MIB}
    pages = {
        "warm-00001-0": page(first, {**both, ("default.another", "3"): 300 * MIB}, waiting=2, limit_bytes=1024 * MIB),
        "warm-00001-1": page(second, both, limit_bytes=1024 * MIB),
    }
    return PoolCluster(pages)
