"""Queries of model pools and of the services in them."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat

from clusters.services.connection import driver_now
from common.errors import NotFound, Unavailable
from deployments.domain.autoscaling.model_copies import copies_of
from deployments.domain.service_file import ModelPool, parse_service
from deployments.domain.service_state.failures import NEVER_FITS
from deployments.models import InferenceService, Revision
from deployments.selectors import service_query
from integrations.clusters.base import ObservedReplica
from integrations.metrics.counters import shared_page
from pools.domain.advice import advice
from pools.domain.figures import PoolFigures, figures_by_replica

MOST_PAGES = 100
"""Replicas of a pool whose figures are read; a service has no more (`service_file.scaling.MAX_REPLICAS`)."""

_AT_ONCE, _UNFIT_SHOWN = 8, 3


@dataclass(frozen=True, slots=True)
class PoolFigureView:
    """The figures of a pool now.

    Attributes:
        total: of all replicas that could be read.
        advice: what to change of the pool, a sentence each.
        problem: why some could not; empty where all could.
    """

    total: PoolFigures
    replicas: Sequence[tuple[str, PoolFigures]]
    problem: str = ""
    advice: Sequence[str] = ()


def pool_query() -> QuerySet[InferenceService]:
    """Return the services that are model pools, each with the number of the services in it as `members`."""
    running = Revision.objects.filter(stopped_at=None)
    its = running.filter(service=OuterRef("pk")).exclude(model_pool={})
    inside = running.filter(pool=Concat(OuterRef("namespace"), Value("/"), OuterRef("name"))).order_by()
    count = inside.values("pool").annotate(count=Count("service", distinct=True)).values("count")
    return service_query().filter(Exists(its)).annotate(members=Coalesce(Subquery(count), 0))


def pool_get(*, namespace: str, name: str) -> InferenceService:
    """Return a pool; raises NotFound."""
    found = pool_query().filter(namespace=namespace, name=name).first()
    if found is None:
        raise NotFound(f"there is no model pool {namespace}/{name}; GET /api/v1/model-pools lists them")
    return found


def pool_members(pool: InferenceService) -> QuerySet[InferenceService]:
    """Return the services that are in a pool."""
    inside = Revision.objects.filter(service=OuterRef("pk"), pool=str(pool), stopped_at=None)
    return service_query().filter(Exists(inside))


@dataclass(frozen=True, slots=True)
class PoolMember:
    """A service in a pool.

    Attributes:
        copies: replicas that are to have its model in memory and answer for it.
    """

    service: InferenceService
    copies: int


def with_copies(pool: InferenceService, services: Iterable[InferenceService]) -> list[PoolMember]:
    """Return services in a pool with the desired copies of their models."""
    found: dict[str, int] = {}
    for load in Revision.objects.filter(service=pool, stopped_at=None).values_list("load", flat=True):
        for model, number in copies_of(load).items():
            found[model] = max(number, found.get(model, 1))
    return [PoolMember(each, found.get(f"{each.namespace}.{each.name}", 1)) for each in services]


def model_pool(pool: InferenceService) -> ModelPool:
    """Return what the file of a pool says of it."""
    found = parse_service(pool.document, namespace=pool.namespace, name=pool.name).model_pool
    return ModelPool(0) if found is None else found  # not its file any more


def pool_figures(pool: InferenceService, *, now: datetime) -> PoolFigureView:
    """Return what the pool's replicas report now, read from their metrics pages."""
    try:
        driver = driver_now(pool.cluster, now)
        observed = driver.observe(pool.namespace, pool.name)
    except Unavailable as error:
        return PoolFigureView(PoolFigures(), (), error.message)
    replicas = [each for revision in observed.revisions for each in revision.replicas if each.metrics_url]
    page_of = partial(shared_page, driver.metrics_page, pool.namespace)
    pages, problem = _read(replicas[:MOST_PAGES], page_of)
    total, each = figures_by_replica([page for _, page in pages])
    by_replica = [(name, its) for (name, _), its in zip(pages, each, strict=True)]
    return PoolFigureView(total, by_replica, problem, advice(total, _unfit(pool)))


def _unfit(pool: InferenceService) -> list[str]:
    """Return some services in the pool of which a running revision's model never fits."""
    inside = Revision.objects.filter(
        pool=str(pool), stopped_at=None, service__deleting_at=None, service__reason__contains=NEVER_FITS
    )
    names = inside.order_by("service_id").values_list("service__namespace", "service__name").distinct()
    return ["/".join(each) for each in names[:_UNFIT_SHOWN]]


def _read(
    replicas: Sequence[ObservedReplica], page_of: Callable[[ObservedReplica], str]
) -> tuple[list[tuple[str, str]], str]:
    """Return the pages that can be read, by the replica's name, and why another cannot."""
    pages, problem = [], ""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pages") as readers:
        asked = [(each.name, readers.submit(page_of, each)) for each in replicas]
    for name, page in asked:
        try:
            pages.append((name, page.result()))
        except Unavailable as error:
            problem = error.message
    return pages, problem
