"""Response caching in front of a scheduler: a cache hit does not reach the model."""

import asyncio
import time
from collections.abc import Sequence

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ServingError
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.base import ModelScheduler
from serving_runtime.scheduler.cache.response_cache import ResponseCache, digest
from serving_runtime.scheduler.job import Job, Result
from serving_runtime.telemetry.statistics import ModelStatistics


class CachedScheduler:
    """Answers from the cache, else by another scheduler; made only for models that enable the cache.

    Args:
        namespace: unique to this load of this model version, so that entries of others never match.
    """

    def __init__(
        self,
        scheduler: ModelScheduler,
        cache: ResponseCache,
        namespace: bytes,
        statistics: ModelStatistics,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._scheduler = scheduler
        self._cache = cache
        self._namespace = namespace
        self._statistics = statistics
        self._loop = loop

    @property
    def pending(self) -> int:
        return self._scheduler.pending

    @property
    def inline(self) -> bool:
        return self._scheduler.inline

    def submit(self, job: Job) -> None:
        started_ns = time.monotonic_ns()
        key = digest(self._namespace, job.arrays)
        outputs = self._cache.get(key)
        looked_up_ns = time.monotonic_ns() - started_ns
        if outputs is not None:
            self._loop.call_soon(self._hit, job, outputs, looked_up_ns)
            return
        self._statistics.record_cache_miss(looked_up_ns)
        on_result = job.on_result

        def answer(result: Result) -> None:
            if not isinstance(result, ServingError):
                self._keep(key, result)
            on_result(result)

        job.on_result = answer
        self._scheduler.submit(job)

    def cancel(self, job: Job) -> None:
        self._scheduler.cancel(job)

    def close(self) -> None:
        self._scheduler.close()

    def _hit(self, job: Job, outputs: list[Array], looked_up_ns: int) -> None:
        counting.cache_hit(job, looked_up_ns, self._statistics)
        job.on_result(outputs)

    def _keep(self, key: bytes, outputs: Sequence[Array]) -> None:
        started_ns = time.monotonic_ns()
        self._cache.put(key, outputs)
        self._statistics.cache_miss_ns += time.monotonic_ns() - started_ns
