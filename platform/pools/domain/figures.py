"""Figures of a pool from the metrics pages of its replicas. Pure.

Counters are those since each replica's start; of a model that several replicas have in memory each has a copy.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

_POOL = "fairlead_pool_"
_LOADS = f"{_POOL}load_duration_us_bucket"
_MEMORY = "fairlead_model_memory_bytes"
_REQUESTS = "nv_inference_request_success"
_SLOWEST = f"{_POOL}slowest_load_duration_us"
_READ = (_POOL, _MEMORY, _REQUESTS)

Row = tuple[str, Mapping[str, str], float]


@dataclass(slots=True)
class ModelUse:
    """A version of a service's model in a pool.

    Attributes:
        memory_bytes: of all its copies.
        copies: replicas that have it in memory.
        requests: answered without error.
        load_ms: its slowest load from the first request until it answered, fetching included; None where unknown.
    """

    namespace: str
    service: str
    version: str
    memory_bytes: int = 0
    copies: int = 0
    requests: int = 0
    load_ms: float | None = None


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """What replicas of a pool report, one or several together.

    Attributes:
        hits, misses: requests whose model was loaded, and requests that waited for a load.
        loads: loads that succeeded.
        load_p99_ms: upper bound of the duration of 99 % of them; None without any.
        load_failures: loads that failed, by reason (`docs/reference/model-pools.md`).
        waiting: requests that wait for a load now.
        memory_limit_bytes: 0 where a replica has no limit.
        models: those in memory or used in the last ten minutes, the largest first.
    """

    hits: int = 0
    misses: int = 0
    loads: int = 0
    load_p99_ms: float | None = None
    load_failures: Mapping[str, int] = field(default_factory=dict)
    evictions: int = 0
    loaded_models: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    waiting: int = 0
    models: Sequence[ModelUse] = field(default_factory=list)

    @property
    def hit_percent(self) -> float | None:
        """Return the share of requests whose model was loaded; None without requests."""
        asked = self.hits + self.misses
        return 100 * self.hits / asked if asked else None


def figures(pages: Iterable[str]) -> PoolFigures:
    """Return the figures of all replicas together, from the metrics page of each."""
    return _figures(_rows(page) for page in pages)


def figures_by_replica(pages: Sequence[str]) -> tuple[PoolFigures, list[PoolFigures]]:
    """Return the figures of all replicas together, and those of each, from their metrics pages in order."""
    parsed = [list(_rows(page)) for page in pages]
    return _figures(parsed), [_figures([rows]) for rows in parsed]


def _figures(replicas: Iterable[Iterable[Row]]) -> PoolFigures:
    sums: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    buckets: Counter[float] = Counter()
    models: dict[tuple[str, str], ModelUse] = {}
    for rows in replicas:
        for name, labels, value in rows:
            if name == _SLOWEST or not name.startswith(_POOL):
                _add(models, name, labels, value)
            elif name == _LOADS:
                buckets[float(labels["le"])] += round(value)
            elif "reason" in labels:
                failures[labels["reason"]] += round(value)
            else:
                sums[name.removeprefix(_POOL)] += round(value)
    by_size = sorted(models.values(), key=lambda each: (each.namespace, each.service, each.version))
    by_size.sort(key=lambda each: (each.memory_bytes, each.requests), reverse=True)
    return PoolFigures(
        hits=sums["hits"],
        misses=sums["misses"],
        loads=buckets[float("inf")],
        load_p99_ms=_quantile_ms(buckets, 0.99),
        load_failures={reason: count for reason, count in sorted(failures.items()) if count},
        evictions=sums["evictions"],
        loaded_models=sums["loaded_models"],
        memory_bytes=sums["memory_bytes"],
        memory_limit_bytes=sums["memory_limit_bytes"],
        waiting=sums["waiting_requests"],
        models=by_size,
    )


def slowest(models: Iterable[ModelUse], most: int) -> list[ModelUse]:
    """Return the models whose loads took the longest, the slowest first."""
    known: dict[float, list[ModelUse]] = defaultdict(list)
    for each in models:
        if each.load_ms is not None:
            known[each.load_ms].append(each)
    return [each for took in sorted(known, reverse=True) for each in known[took]][:most]


def _add(models: dict[tuple[str, str], ModelUse], name: str, labels: Mapping[str, str], value: float) -> None:
    namespace, _, service = labels.get("model", "").partition(".")
    if not service:
        return
    version = labels.get("version", "")
    use = models.setdefault((labels["model"], version), ModelUse(namespace, service, version))
    if name == _MEMORY:
        use.memory_bytes += round(value)
        use.copies += value > 0
    elif name == _REQUESTS:
        use.requests += round(value)
    else:
        use.load_ms = max(use.load_ms or 0.0, value / 1000)


def _quantile_ms(buckets: Mapping[float, int], share: float) -> float | None:
    """Return the edge below which a share of the loads lies; the last finite edge where they took longer."""
    total = buckets.get(float("inf"), 0)
    if not total:
        return None
    edges = sorted(edge for edge in buckets if edge != float("inf"))
    return next((edge for edge in edges if buckets[edge] >= share * total), edges[-1] if edges else 0.0) / 1000


def _rows(page: str) -> Iterable[Row]:
    """Yield the rows of a page that are read here; a page may have those of hundreds of models."""
    lines = (line for line in page.splitlines() if line.startswith(_READ))
    for family in text_string_to_metric_families("\n".join((*lines, ""))):
        for sample in family.samples:
            yield sample.name.removesuffix("_total"), sample.labels, sample.value
