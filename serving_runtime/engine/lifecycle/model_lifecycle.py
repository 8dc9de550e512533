"""Model lifecycle: loads, reloads and unloads models while requests are answered.

    find -> plan -> open beside the old one (threads) -> switch (one step of the event loop) -> the old one answers what
    it accepted -> its memory is given back

A model loads whole or not at all, and a load that fails leaves the model as it was.
"""

import asyncio
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from serving_runtime.backends.base import LoadedModel, RemoteModel, StreamingModel
from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.config.model import ModelConfig
from serving_runtime.engine.catalog.load_override import Override, materialize
from serving_runtime.engine.catalog.repository import Found, Marks, ModelFolder, Repository
from serving_runtime.engine.lifecycle.ensemble_dependencies import Parts
from serving_runtime.engine.lifecycle.idle_models import loaded_for, needs, unused
from serving_runtime.engine.lifecycle.states import Model
from serving_runtime.engine.lifecycle.unloaded_models import UnloadedModels
from serving_runtime.engine.loading import ensembles, load_model
from serving_runtime.engine.loading.load_model import LoadPlan, OpenedModel
from serving_runtime.engine.loading.reuse import Reuse, reusable
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.loading.threads import LoadThreads
from serving_runtime.engine.memory.admission import Admission
from serving_runtime.engine.memory.budget import NOT_ITS_OWN_BYTES, Budget, shown
from serving_runtime.engine.memory.least_recently_used import LeastRecentlyUsed
from serving_runtime.engine.memory.process_memory import give_back, growth
from serving_runtime.engine.servables.ensemble import Answering
from serving_runtime.engine.servables.factory import make_servable, measure
from serving_runtime.engine.servables.servable import Servable

logger = logging.getLogger(__name__)

_DRAIN_LOOK_S = 0.01
"""Interval of checks whether an old model has answered its last request."""


class Lifecycle:
    """The models of the repositories. Lives on one event loop.

    Attributes:
        models: every name that was ever in a repository or loaded.
        servables: those that answer, by name and version; by name and "" the highest version.
        on_switch: called whenever a name gets another servable.
        order: of idle models, where `stays` is given.
        code_threads: how many models whose own code runs as they are loaded are opened at the same time.

    Args:
        evicts: idle models make room for those that are loaded.
        patience_s: how long to wait for busy models to become idle.
        stays: returns whether a model is not to be evicted, for very many models: unloaded ones are forgotten, no load
            has work for each of the others, and `on_switch` is called only where a name's files have changed.
    """

    def __init__(
        self,
        repository: Repository,
        settings: LoadSettings,
        answering: Answering,
        *,
        threads: int,
        budget: Budget,
        evicts: bool = False,
        patience_s: float = 0.0,
        stays: Callable[[str], bool] | None = None,
    ) -> None:
        self.models: dict[str, Model] = {}
        self.servables: dict[tuple[str, str], Servable] = {}
        self.on_switch: list[Callable[[], None]] = []
        self._repository = repository
        self._settings = settings
        self._answering = answering
        self._parts = Parts(self.models, self._load_part)
        self._threads = LoadThreads(threads)
        self.code_threads = max(2, threads)
        self._code_threads = LoadThreads(self.code_threads)
        self.order = LeastRecentlyUsed(self._last_used_ms, self._may_leave, stays) if stays is not None else None
        self._memory = UnloadedModels() if stays is not None else None
        self._admission = Admission(
            budget, lambda: unused(self.models), self._evict if evicts else None, patience_s, self.order
        )
        self._alive: set[Servable] = set()
        self._users: Counter[int] = Counter()  # of each opened model, by its id
        self._background: set[asyncio.Task[None]] = set()

    @property
    def inflight(self) -> int:
        """Return how many requests of clients are with models, including models that are being unloaded."""
        return sum([servable.statistics.inflight - servable.steps_under_way for servable in self._alive])

    @property
    def budget(self) -> Budget:
        """Return the memory of all models."""
        return self._admission.budget

    def _last_used_ms(self, name: str) -> int:
        return max(servable.last_used_ms for servable in self.models[name].serving.values())

    def _may_leave(self, name: str) -> bool:
        model = self.models[name]
        return not model.lock.locked() and not any(servable.busy for servable in model.serving.values())

    def _model(self, name: str) -> Model:
        model = self.models.get(name)
        if model is None:
            model = self.models[name] = Model(name)
            if self._memory is not None:
                model.measured_bytes.update(self._memory.measured_bytes(name))
        return model

    def _forget(self, model: Model) -> None:
        """Forget a model of which nothing is left, where models are too many to be kept in mind."""
        if self._memory is not None and not model.serving and not model.changes and model.at_rest:
            if self._memory.keep(model.name, model.measured_bytes):
                self._notify()
            self.models.pop(model.name, None)

    def _notify(self) -> None:
        for notify in self.on_switch:
            notify()

    def guard_others(self) -> None:
        """Guard served models against crashes of further loads (see LoadSettings)."""
        self._settings = replace(self._settings, guards_others=True)

    async def scan(self) -> dict[str, Found | ModelError]:
        """Return what the repositories hold now; raises ModelError for one that cannot be read."""
        found = await self._threads.run(self._repository.scan)
        for name, place in found.items():
            model = self.models.setdefault(name, Model(name))
            model.repository = place.root.name if isinstance(place, Found) else ""
        for name in [name for name, model in self.models.items() if name not in found and model.is_over]:
            del self.models[name]
        return found

    async def find(self, name: str) -> Found:
        """Return a model of the repositories; raises NotFound or ModelError."""
        return await self._threads.run(self._repository.find, name)

    async def load(self, found: Found) -> None:
        """Load or reload a model of the repositories; raises ModelError and leaves the model as it was."""
        await self._load(found.name, partial(self._plan, found), found.marks)

    async def load_override(self, name: str, override: Override) -> None:
        """Load a model by the request's own config and files; raises ServingError like `load`."""
        folder: Callable[[], ModelFolder] = partial(materialize, name, override.files)
        if not override.files:
            folder = (await self.find(name)).fetch
        await self._load(name, partial(self._plan_override, folder, override.config), None)

    async def unload(self, name: str) -> None:
        """Unload a model; accepted requests are answered, its memory is released in the background."""
        await self._unload(self.models[name])

    async def _unload(self, model: Model) -> list[asyncio.Task[None]]:
        model.changes += 1
        try:
            async with model.lock:
                old = model.loaded
                leaving = self._switch(model, {}, None)
                model.forget()
                self._discard(old)
        finally:
            model.changes -= 1
        logger.info("unloaded model '%s'", model.name)
        return leaving

    def close(self) -> None:
        """End background tasks and all schedulers."""
        for task in self._background:
            task.cancel()
        for model in self.models.values():
            for servable in model.serving.values():
                servable.scheduler.close()
                if isinstance(servable.model, RemoteModel):
                    servable.model.close()
            self._discard(model.loaded)

    def _plan(self, found: Found) -> LoadPlan:
        return load_model.plan(found.fetch(), self._settings)

    def _plan_override(self, folder: Callable[[], ModelFolder], config: Any) -> LoadPlan:
        fetched = folder()
        try:
            return load_model.plan(fetched, self._settings, config)
        except ModelError:
            _remove(fetched)
            raise

    async def _load(self, name: str, make_plan: Callable[[], LoadPlan], marks: Marks | None) -> None:
        model = self._model(name)
        model.changes += 1
        try:
            await self._load_locked(model, make_plan, marks)
        finally:
            model.changes -= 1
            self._forget(model)

    async def _load_locked(self, model: Model, make_plan: Callable[[], LoadPlan], marks: Marks | None) -> None:
        name = model.name
        async with model.lock:
            model.tried = marks
            plan = None
            try:
                plan = await self._threads.run(make_plan)
                model.loading(plan.versions)
                await self._prepare(model, plan)
                serving = await self._open(model, plan)
            except ServingError as error:
                model.failed(error)
                self._discard(plan)
                raise
            except Exception as error:
                failure = ModelError(f"model '{name}' cannot be loaded: {type(error).__name__}: {error}")
                model.failed(failure)
                self._discard(plan)
                raise failure from error
            old = model.loaded
            self._switch(model, serving, plan)
            if old is not None:
                _leave(old.folder, removed=old.folder.path != plan.folder.path)

    async def _prepare(self, model: Model, plan: LoadPlan) -> None:
        """Load the models of an ensemble's steps and check that they fit; raises ModelError."""
        model.parts = ensembles.parts(plan.written)
        if model.parts:
            await self._parts.ensure(model.name, model.parts)
            ensembles.check(load_model.ensemble_config(plan), self._config)

    async def _load_part(self, name: str) -> None:
        found = await self.find(name)
        model = self.models.get(name)
        if model is not None and model.broken and model.tried == found.marks:  # it would fail again
            raise ModelError(model.reason)
        await self.load(found)

    def _config(self, name: str, version: str) -> ModelConfig | None:
        servable = self.servables.get((name, version))
        return servable.config if servable is not None else None

    async def _open(self, model: Model, plan: LoadPlan) -> dict[int, Servable]:
        """Return the servables of this plan: versions that are kept, and new ones beside old ones."""
        reuse = reusable(model.loaded, plan)
        missing = tuple(version for version in plan.versions if version not in reuse.kept)
        open_models = {version: model.serving[version].model for version in reuse.reconfigured}
        open_models = {version: found for version, found in open_models.items() if not isinstance(found, RemoteModel)}
        fresh = [version for version in missing if version not in open_models]
        claims = await self._admission.claim(model.name, needs(model, plan, fresh))
        try:
            threads = self._code_threads if plan.folder.code else self._threads
            opened = await threads.run(_open, plan, missing, self._settings, open_models)
        except BaseException:
            self._admission.release(claims.values())
            raise
        for version, claim in claims.items():
            found = opened[version][0]
            model.measured_bytes[version, plan.file_bytes[version]] = found.memory_bytes
            self._admission.settle(claim, found.model, found.memory_bytes)
        try:
            await self._admission.check(model.name, sum(opened[version][0].memory_bytes for version in claims))
            return self._servables(model, plan, reuse, opened)
        except Exception:
            for version in claims:
                await self._free(opened[version][0].model)
            raise

    def _servables(
        self, model: Model, plan: LoadPlan, reuse: Reuse, opened: Mapping[int, tuple[OpenedModel, bool]]
    ) -> dict[int, Servable]:
        serving = {}
        for version in plan.versions:
            if version in reuse.kept:
                serving[version] = model.serving[version]
                continue
            found, inline = opened[version]
            serving[version] = servable = make_servable(version, found, self._answering, inline=inline)
            servable.memory_bytes = self._admission.size_bytes(found.model)
            how = "reconfigured" if version in reuse.reconfigured else "loaded"
            where = "inline" if inline else "threaded"
            logger.info("%s model '%s' version %s (%s)", how, model.name, version, where)
        return serving

    async def _evict(self, name: str) -> None:
        model = self.models[name]
        leaving = [await self._unload(self.models[member]) for member in (name, *loaded_for(model, self.models))]
        await asyncio.gather(*[task for tasks in leaving for task in tasks])

    def _switch(self, model: Model, serving: dict[int, Servable], plan: LoadPlan | None) -> list[asyncio.Task[None]]:
        """Switch requests to `serving`, in one step; returns tasks that end when the old servables have finished."""
        old = model.serving
        model.serve(serving, plan)
        for version in old:
            del self.servables[model.name, str(version)]
        self.servables.pop((model.name, ""), None)
        for servable in serving.values():  # ascending: the highest becomes the default
            self.servables[model.name, servable.version] = servable
            self.servables[model.name, ""] = servable
        if self.order is not None and serving:
            self.order.add(model.name)
        elif self.order is not None:
            self.order.discard(model.name)
        if self._memory is None or (plan is not None and self._memory.changes(model.name, plan.folder.marks)):
            self._notify()
        for servable in serving.values():
            if servable not in self._alive:
                self._alive.add(servable)
                self._users[id(servable.model)] += 1
        leaving = []
        for version, servable in old.items():
            successor = serving.get(version)
            if successor is servable:
                continue
            if successor is not None:
                successor.succeed(servable)
            leaving.append(self._run(self._retire(model, version, servable)))
        return leaving

    async def _retire(self, model: Model, version: int, servable: Servable) -> None:
        # polled, to spare every request a notification; sequences go on here while there is a successor
        while servable.statistics.inflight or (servable.live_sequences and version in model.serving):  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_LOOK_S)
        servable.scheduler.close()
        successor = model.serving.get(version)
        if successor is not None:
            successor.absorb(servable)
        self._alive.discard(servable)
        self._users[id(servable.model)] -= 1
        if not self._users[id(servable.model)]:  # a reconfigured version shares it
            del self._users[id(servable.model)]
            await self._free(servable.model)
        model.gone(version)
        self._forget(model)

    async def _free(self, model: LoadedModel | StreamingModel) -> None:
        await asyncio.to_thread(_close, model)
        self._admission.freed(model)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    @staticmethod
    def _discard(plan: LoadPlan | None) -> None:
        if plan is not None:
            _leave(plan.folder, removed=True)


def _open(
    plan: LoadPlan, versions: tuple[int, ...], settings: LoadSettings, open_models: Mapping[int, Any]
) -> dict[int, tuple[OpenedModel, bool]]:
    """Return versions, opened and run, each with whether it begins in the event loop."""
    opened = load_model.open_versions(plan, versions, settings, open_models)
    give_back()  # memory that reading the files took
    try:
        return {version: (found, _first_run(plan, version, found, settings)) for version, found in opened.items()}
    except BaseException:
        for version in opened.keys() - open_models.keys():
            opened[version].model.close()
        give_back()
        raise


def _first_run(plan: LoadPlan, version: int, found: OpenedModel, settings: LoadSettings) -> bool:
    """Return whether a version begins in the event loop; raises VersionError where it takes too much memory."""
    with growth() as grown:
        inline = measure(found)
    most_bytes = settings.memory_bytes
    took_bytes = max(found.peak_bytes, found.memory_bytes + (grown.peak_bytes or 0))
    if most_bytes is not None and took_bytes > most_bytes + NOT_ITS_OWN_BYTES:
        raise load_model.VersionError(
            f"model '{plan.folder.name}' version {version} took {shown(took_bytes)} of memory as it was loaded and "
            f"first run, and all models may take {shown(most_bytes)}; make it smaller, or raise "
            "--model-memory-budget-bytes",
            version,
        )
    return inline


def _leave(folder: ModelFolder, *, removed: bool) -> None:
    """Do what follows when no model is loaded from a folder any more."""
    if removed:
        _remove(folder)
    if folder.on_left is not None:
        folder.on_left()


def _remove(folder: ModelFolder) -> None:
    if folder.temporary:
        shutil.rmtree(folder.path, ignore_errors=True)


def _close(model: LoadedModel | StreamingModel) -> None:
    model.close()
    give_back()
