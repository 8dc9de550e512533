"""Servable factory: makes the servable of an opened version, by its config."""

import asyncio
from collections.abc import Callable
from functools import partial

from serving_runtime.backends.base import CallingModel, ParameterizedModel, RequestModel
from serving_runtime.engine.loading.load_model import OpenedModel
from serving_runtime.engine.loading.warmup import begins_inline
from serving_runtime.engine.servables.bls import ServerCalls
from serving_runtime.engine.servables.decoupled import DecoupledServable
from serving_runtime.engine.servables.ensemble import Answering, EnsembleServable
from serving_runtime.engine.servables.parameterized import ParameterizedServable
from serving_runtime.engine.servables.per_request import RequestServable
from serving_runtime.engine.servables.sequence import SequenceServable
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler.cache.cached_scheduler import CachedScheduler
from serving_runtime.scheduler.rate_limiter import Limit, RateLimiter


def measure(opened: OpenedModel) -> bool:
    """Return whether a version begins in the event loop; runs it, so call this in a thread."""
    config = opened.config
    if config.decoupled or config.ensemble is not None or isinstance(opened.model, RequestModel):
        return False
    return begins_inline(opened.model, config)


def make_servable(version: int, opened: OpenedModel, answering: Answering, *, inline: bool) -> Servable:
    """Return an opened version with the scheduler of its config; call this on the event loop.

    Args:
        answering: the server that this becomes a part of.

    Raises ModelError for instances that need more of a resource than the server has.
    """
    kind: Callable[..., Servable] = Servable
    if opened.config.decoupled:
        kind = DecoupledServable
    elif opened.config.ensemble is not None:
        kind = partial(EnsembleServable, answering=answering)
    elif opened.config.sequences is not None:
        kind = partial(SequenceServable, initial_states=opened.initial_states)
    elif isinstance(opened.model, ParameterizedModel):
        kind = ParameterizedServable
    elif isinstance(opened.model, RequestModel):
        kind = RequestServable
    servable = kind(
        version=str(version),
        message=opened.message,
        config=opened.config,
        model=opened.model,
        inline=inline,
        limit=_limit(opened, answering.rate_limiter),
    )
    servable.labels = opened.labels
    if isinstance(opened.model, CallingModel):
        opened.model.connect(ServerCalls(answering, asyncio.get_running_loop()))
    cache = answering.response_cache
    if opened.config.cached and cache is not None:
        loop = asyncio.get_running_loop()
        servable.scheduler = CachedScheduler(servable.scheduler, cache, cache.namespace(), servable.statistics, loop)
    return servable


def _limit(opened: OpenedModel, limiter: RateLimiter | None) -> Limit | None:
    groups = opened.config.instance_groups
    if limiter is None or not any(group.resources for group in groups):
        return None
    return limiter.limit(groups, opened.config.name)
