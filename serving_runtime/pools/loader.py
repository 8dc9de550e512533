"""On-demand loading from a pool: fetches a model version's folder, loads it, and lets it go when it is evicted.

arrive -> loaded? -> failed lately? -> one task a version: fetch (fetcher) -> load (threads) -> holds its folder
                                                                                 `-- unloaded: released
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import NoRoom, NotFound, ServingError
from serving_runtime.engine.catalog.repository import Found, Marks, local_marks
from serving_runtime.engine.lifecycle.model_lifecycle import Lifecycle
from serving_runtime.engine.lifecycle.on_demand import OnDemand
from serving_runtime.engine.lifecycle.states import Model
from serving_runtime.engine.loading.pool_rules import CODE_FILE
from serving_runtime.engine.memory.budget import Budget
from serving_runtime.pools.client import FailedError, FetcherClient
from serving_runtime.pools.directory import Directory, Entry
from serving_runtime.pools.fetch_slots import FetchSlots, Transfer
from serving_runtime.pools.metrics import PoolCounts
from serving_runtime.pools.names import VersionKey, key_of
from serving_runtime.pools.shown_models import ShownModels
from serving_runtime.telemetry.metrics.families import ModelSeries

logger = logging.getLogger(__name__)

LOAD_RETRY_S = 10.0
"""How long a model that was fetched, but did not load, is not tried again."""

_MOST_FAILURES = 1 << 14


class Hold:
    """A folder of the cache that a load uses; released once."""

    def __init__(self, client: FetcherClient, digest: str) -> None:
        self._client = client
        self._digest = digest
        self._is_released = False
        client.hold(digest)

    def release(self) -> None:
        if not self._is_released:
            self._is_released = True
            self._client.release(self._digest)


@dataclass(frozen=True, slots=True)
class PoolRoot:
    """The root of one fetched model version (engine.catalog.Root); its files are all here."""

    path: Path

    @property
    def name(self) -> str:
        return "pool"

    def scan(self) -> dict[str, Marks]:
        return {}

    def find(self, model: str) -> Marks | None:  # noqa: ARG002 - models are found by the loader
        return None

    def fetch(self, model: str, marks: Marks) -> Path:  # noqa: ARG002 - it is here already
        return self.path

    def bring(self, folder: Path, model: str, marks: Marks, version: int) -> None: ...


class PoolLoader(OnDemand):
    """Loads versions of a pool's models by their keys. Lives on the event loop."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        timeout_s: float,
        client: FetcherClient,
        directory: Directory,
        counts: PoolCounts,
    ) -> None:
        super().__init__(lifecycle, timeout_s)
        self._client = client
        self._directory = directory
        self._counts = counts
        self._timeout_s = timeout_s
        self._identities: dict[str, str] = {}
        self._versions: dict[str, set[VersionKey]] = {}
        self._unloading: set[str] = set()
        self._shown = ShownModels()
        self._code_slots = FetchSlots(lifecycle.code_threads)
        self._failures: OrderedDict[str, tuple[float, ServingError]] = OrderedDict()
        directory.on_change = self._on_change

    @property
    def loaded_models(self) -> int:
        """Return how many versions are loaded."""
        return len(self._identities)

    def series(self) -> list[ModelSeries]:
        """Return the data of the metrics page: of models that were used lately."""
        return self._shown.series()

    @property
    def budget(self) -> Budget:
        """Return the memory of the loaded versions."""
        return self._lifecycle.budget

    def may_load(self, name: str, model: Model | None) -> bool:
        """Return whether a request would wait for a version: also where it has failed lately, for the error."""
        return (model is None or not model.serving) and key_of(name) is not None

    def failure(self, name: str) -> ServingError | None:
        """Return why a version failed to load lately."""
        until, error = self._failures.get(name, (0.0, None))
        return error if error is not None and time.monotonic() < until else None

    async def arrive(self, name: str, size_bytes: int) -> None:
        error = self.failure(name)
        if error is not None:
            raise error.with_traceback(None)
        self._counts.misses += 1
        await super().arrive(name, size_bytes)

    async def prefetch(self, key: VersionKey) -> None:
        """Load a version before its first request; returns when it is loaded. Raises ServingError."""
        await self._directory.look(key.model)
        name = str(key)
        self._failures.pop(name, None)
        if not self._is_loaded(name):
            await super().arrive(name, 0)  # no request misses it

    def _is_loaded(self, name: str) -> bool:
        model = self._lifecycle.models.get(name)
        return model is not None and bool(model.serving)

    async def _load(self, name: str) -> None:
        began = time.monotonic()
        try:
            await self._fetch_and_load(name)
        except FailedError as error:
            self._fail(name, error.error, error.retry_s, error.kind)
            raise error.error from error
        except NoRoom as error:  # the next request may find room, unless it never fits
            never = "never fits" in str(error)
            self._fail(name, error, LOAD_RETRY_S if never else 0.0, "too-large" if never else "no-room")
            raise
        except ServingError as error:
            self._fail(name, error, LOAD_RETRY_S, "load")
            raise
        self._failures.pop(name, None)
        self._counts.loaded(name, time.monotonic() - began)

    async def _fetch_and_load(self, name: str) -> None:
        key = key_of(name)
        if key is None:
            raise NotFound(f"'{name[:200]}' is not <namespace>.<service>@<version>")
        asked = {"model": key.model, "version": key.version}
        answer = await self._client.ask(asked, patience_s=self._timeout_s)
        hold = Hold(self._client, answer["digest"])
        folder = Path(answer["folder"])
        try:
            marks = await asyncio.to_thread(local_marks, folder)
            found = Found(
                name,
                PoolRoot(folder),
                marks,
                serves_as=key.service,
                on_left=partial(self._left, name, hold),
                checked=answer.get("checked") is True,
                code=any(path.rpartition("/")[2] == CODE_FILE for path in marks),
            )
            await self._load_found(key, found)
        except BaseException:
            hold.release()
            raise
        if self._is_loaded(name):  # else it was unloaded in the meantime
            self._identities[name] = answer["identity"]
            self._shown.load(key, self._lifecycle.servables[name, ""])
            self._versions.setdefault(key.model, set()).add(key)

    async def _load_found(self, key: VersionKey, found: Found) -> None:
        """Load a model; those in Python of one namespace, which may take as long as they want, in half of the slots."""
        if not found.code:
            await self._lifecycle.load(found)
            return
        place = Transfer(key.model.partition(".")[0])
        await self._code_slots.take(place)
        try:
            await self._lifecycle.load(found)
        finally:
            self._code_slots.release(place)

    def _fail(self, name: str, error: ServingError, retry_s: float, reason: str) -> None:
        self._counts.failed(reason)
        logger.warning("model '%s' is not loaded: %s", name, error)
        if retry_s > 0:
            self._failures[name] = time.monotonic() + retry_s, error.with_traceback(None)
            self._failures.move_to_end(name)
            if len(self._failures) > _MOST_FAILURES:
                self._failures.popitem(last=False)

    def _left(self, name: str, hold: Hold) -> None:
        """Let the folder go of a load that failed, or of a model that is unloaded or replaced."""
        hold.release()
        key = key_of(name)
        model = self._lifecycle.models.get(name)
        if key is None or name not in self._identities or (model is not None and model.serving):
            return
        del self._identities[name]
        self._shown.leave(key)
        versions = self._versions[key.model]
        versions.discard(key)
        if not versions:
            del self._versions[key.model]
        if name in self._unloading:
            self._unloading.discard(name)
        else:
            self._counts.evictions += 1

    def _on_change(self, model: str, entry: Entry | None) -> None:
        """Follow the catalog: unload removed versions, reload changed ones, let those leave that are not pinned."""
        for key in tuple(self._versions.get(model, ())):
            name = str(key)
            identity = entry.identities.get(key.version) if entry is not None else None
            if identity is None:
                self._unloading.add(name)
                self._run(self._lifecycle.unload(name))
            elif identity != self._identities[name]:
                if name not in self._loads:
                    self._begin_load(name)
            elif self._lifecycle.order is not None and name not in self._lifecycle.order:
                self._lifecycle.order.add(name)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
