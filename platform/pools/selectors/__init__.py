"""Queries of model pools and of the services in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat

from clusters.services.connection import driver_now
from common.errors import NotFound, Unavailable
from deployments.domain.service_file import ModelPool, parse_service
from deployments.models import InferenceService, Revision
from deployments.selectors import service_query
from pools.domain.figures import PoolFigures, figures

MOST_PAGES = 100
"""Replicas of a pool whose figures are read; a service has no more (`service_file.scaling.MAX_REPLICAS`)."""


@dataclass(frozen=True, slots=True)
class PoolFigureView:
    """The figures of a pool now.

    Attributes:
        total: of all replicas that could be read.
        problem: why some could not; empty where all could.
    """

    total: PoolFigures
    replicas: Sequence[tuple[str, PoolFigures]]
    problem: str = ""


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


def model_pool(pool: InferenceService) -> ModelPool:
    """Return what the file of a pool says of it."""
    found = parse_service(pool.document, namespace=pool.namespace, name=pool.name).model_pool
    return ModelPool(0) if found is None else found  # not its file any more


def pool_figures(pool: InferenceService, *, now: datetime) -> PoolFigureView:
    """Return what the pool's replicas report now, read from their metrics pages."""
    pages, problem = [], ""
    try:
        driver = driver_now(pool.cluster, now)
        observed = driver.observe(pool.namespace, pool.name)
    except Unavailable as error:
        return PoolFigureView(PoolFigures(), (), error.message)
    for replica in [each for revision in observed.revisions for each in revision.replicas][:MOST_PAGES]:
        if not replica.metrics_url:
            continue
        try:
            pages.append((replica.name, driver.metrics_page(pool.namespace, replica)))
        except Unavailable as error:
            problem = error.message
    total = figures(page for _, page in pages)
    return PoolFigureView(total, [(name, figures([page])) for name, page in pages], problem)
