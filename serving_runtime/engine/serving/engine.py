"""Inference engine: all models of a server, the one object that protocols call."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from serving_runtime import __version__
from serving_runtime.common.errors import ModelError, NotFound, ServingError, Unavailable, Unsupported
from serving_runtime.common.request import Cancellable, InferRequest, OnDone, Streaming
from serving_runtime.engine.catalog.open_repositories import Roots
from serving_runtime.engine.catalog.repository import Repository
from serving_runtime.engine.catalog.repository_location import Location
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.lifecycle.controller import Controller
from serving_runtime.engine.lifecycle.model_lifecycle import Lifecycle
from serving_runtime.engine.lifecycle.on_demand import OnDemand, Source
from serving_runtime.engine.lifecycle.states import IndexEntry
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.budget import Budget
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.requests import classification
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.engine.serving.concurrency_limit import ConcurrencyLimit
from serving_runtime.engine.serving.observers import Observers
from serving_runtime.engine.serving.statistics import statistics_message
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.cache.response_cache import ResponseCache
from serving_runtime.scheduler.rate_limiter import RateLimiter
from serving_runtime.telemetry.metrics.families import ModelSeries

SERVER_NAME = "fairlead"
EXTENSIONS = (
    "binary_tensor_data",
    "classification",
    "logging",
    "model_configuration",
    "model_repository",
    "model_repository(unload_dependents)",
    "parameters",
    "schedule_policy",
    "sequence",
    "sequence(string_id)",
    "statistics",
    "trace",
)
CONTROL_EXTENSIONS = frozenset(
    ("logging", "model_repository", "model_repository(unload_dependents)", "system_shared_memory", "trace")
)
"""Those whose calls `--allow-control-calls=false` closes."""

logger = logging.getLogger(__name__)


class Engine:
    """Loads the models of the repositories and finds them for requests. Lives on one event loop.

    Attributes:
        response_cache: for models that enable it; None where --cache-config names none.
        rate_limiter: of the resources that runs wait for; None where --rate-limit is off.
        shared_memory: the regions that clients have registered, over any protocol.

    Args:
        source: of very many models, in place of `roots`; they are loaded on demand.
    """

    def __init__(
        self,
        roots: Sequence[Location],
        settings: LoadSettings,
        control: Control = Control(),  # noqa: B008 - frozen
        *,
        name: str = SERVER_NAME,
        strict_readiness: bool = True,
        shared_memory: SharedMemory | None = None,
        max_concurrent_requests: int = 0,
        response_cache: ResponseCache | None = None,
        rate_limiter: RateLimiter | None = None,
        control_calls: bool = True,
        observers: Observers | None = None,
        source: Source | None = None,
    ) -> None:
        self._name = name
        self._control_calls = control_calls
        self._observers = observers if observers is not None else Observers()
        self.response_cache = response_cache
        self.rate_limiter = rate_limiter
        self._control = control
        self._roots = Roots(control.cache_directory)
        self._repository = Repository([self._roots.open(root) for root in roots])
        self._lifecycle = Lifecycle(
            self._repository,
            settings,
            self if source is None else _Alone(self),
            threads=control.load_threads,
            budget=Budget(control.memory_budget_bytes),
            evicts=control.on_demand,
            patience_s=control.on_demand_timeout_s,
            stays=source.stays if source is not None else None,
        )
        self._source = source
        self._on_demand: OnDemand | None = None
        if source is not None:
            self._on_demand = source.loader(self._lifecycle)
        elif control.on_demand:
            self._on_demand = OnDemand(self._lifecycle, control.on_demand_timeout_s)
        self._controller = Controller(self._lifecycle, control, stopping=lambda: self.draining)
        self._models = self._lifecycle.models
        self._servables = self._lifecycle.servables
        self._strict_readiness = strict_readiness
        self._limit = (
            ConcurrencyLimit(max_concurrent_requests, lambda: self.inflight) if max_concurrent_requests else None
        )
        self.draining = False
        self.shared_memory = shared_memory or SharedMemory(allowed=False)

    async def load_all(self) -> list[ServingError]:
        """Load the models of the control mode at the start; returns failures (see Controller)."""
        return await self._controller.load_all()

    def guard_others(self) -> None:
        """Guard served models against crashes of further loads (see LoadSettings)."""
        self._lifecycle.guard_others()

    def start_polling(self) -> None:
        self._controller.start_polling()

    async def poll(self) -> None:
        await self._controller.poll()

    async def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model (see Controller); raises ServingError, the model is then as it was."""
        await self._controller.load(name, config, files)

    async def unload(self, name: str, *, dependents: bool = False) -> None:
        """Unload a model (see Controller); raises NotFound for an unknown name."""
        await self._controller.unload(name, dependents=dependents)

    @property
    def ready(self) -> bool:
        """Return whether the server accepts requests: not draining, and with strict readiness every model is loaded."""
        if self._source is not None and not self._source.is_ready:
            return False
        return not self.draining and not (
            self._strict_readiness and any(model.broken for model in self._models.values())
        )

    @property
    def inflight(self) -> int:
        """Return how many requests of clients are accepted and not answered, without the steps of ensembles."""
        return self._lifecycle.inflight

    def infer(self, request: InferRequest, on_done: OnDone, *, observe: bool = True) -> Cancellable:
        """Start a request, or queue it at the concurrency limit; the result can cancel it.

        Raises ServingError when it is refused right away.

        Args:
            observe: whether the observers see it; False for a request that they have seen.
        """
        if observe and self._observers.active:
            return self._observers.start(self._unobserved, request, on_done)
        servable = self._servables.get((request.model_name, request.model_version))
        if servable is None:
            demand = self._demand(request.model_name)
            if demand is None:
                raise self._unknown(request.model_name, request.model_version)
            return demand.infer(request, on_done, self._unobserved)
        if request.classes:
            on_done = _answering_classes(request, servable, on_done)
        if self._limit is not None:
            return self._limit.infer(servable.infer, servable.statistics, request, on_done)
        return servable.infer(request, on_done)

    def _unobserved(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        return self.infer(request, on_done, observe=False)

    def infer_step(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        """Start a request of an ensemble's step, as a part of an admitted one; raises ServingError."""
        servable = self._servables.get((request.model_name, request.model_version))
        if servable is not None:
            return servable.infer(request, on_done)
        demand = self._demand(request.model_name)
        if demand is None:
            raise self._unknown(request.model_name, request.model_version)
        return demand.infer(request, on_done, self.infer_step)

    def explain(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        """Infer an explanation of the answer; raises Unsupported where the model cannot explain."""
        servable = self.servable(request.model_name, request.model_version)
        if self._limit is not None:
            return self._limit.infer(servable.explain, servable.statistics, request, on_done)
        return servable.explain(request, on_done)

    def stream_step(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        """Infer a step like `infer_step`, for a caller that takes any number of answers; the model must be loaded."""
        return self.servable(request.model_name, request.model_version).stream(request, on_done)

    def _demand(self, name: str) -> OnDemand | None:
        """Return the loader of an on-demand model, None where the model is not one."""
        demand = self._on_demand
        if demand is None or self.draining or not demand.may_load(name, self._models.get(name)):
            return None
        return demand

    def is_loaded(self, name: str) -> bool:
        """Return whether a model has a version that is loaded."""
        return (name, "") in self._servables

    def sleeps(self, name: str, version: str = "") -> bool:  # noqa: ARG002 - all versions are loaded together
        """Return whether a model is not loaded, and `arrive` would load it."""
        return self._demand(name) is not None

    async def arrive(self, name: str, size_bytes: int, version: str = "") -> None:  # noqa: ARG002 - as in `sleeps`
        """Wait for a model that is loaded on demand, for a request of so many bytes; returns at once for all others.

        Raises ServingError when it does not load, or not in time, or too many bytes wait already.
        """
        demand = self._demand(name)
        if demand is not None:
            await demand.arrive(name, size_bytes)

    def stream(self, request: InferRequest, on_done: OnDone) -> Streaming:
        """Infer for a caller that takes any number of answers: the only way to decoupled models.

        The model must be loaded: see `arrive`.
        """
        if self._observers.active:
            return self._observers.start(self._stream, request, on_done)
        return self._stream(request, on_done)

    def _stream(self, request: InferRequest, on_done: OnDone) -> Streaming:
        servable = self.servable(request.model_name, request.model_version)
        if request.classes:
            on_done = _answering_classes(request, servable, on_done)
        if self._limit is not None:
            decoupled = servable.config.decoupled
            return self._limit.infer(servable.stream, servable.statistics, request, on_done, decoupled=decoupled)
        return servable.stream(request, on_done)

    def watch(self, on_switch: Callable[[], None]) -> None:
        """Call a function whenever a name gets another servable, which makes what callers remember of it outdated."""
        self._lifecycle.on_switch.append(on_switch)

    def servable(self, name: str, version: str = "") -> Servable:
        """Return a model version, the default one for no version; raises NotFound."""
        servable = self._servables.get((name, version))
        if servable is None:
            raise self._unknown(name, version)
        return servable

    def model_ready(self, name: str, version: str = "") -> bool:
        servable = self._servables.get((name, version))
        return not self.draining and servable is not None and not servable.problem

    def labels(self, name: str, version: str = "") -> classification.Labels:
        """Return the labels of a model version's outputs, none where it is not loaded."""
        servable = self._servables.get((name, version))
        return servable.labels if servable is not None else classification.NO_LABELS

    def serves(self, name: str, version: str = "") -> bool:
        """Return whether a model version answers, now or once it is loaded; also while the server drains."""
        servable = self._servables.get((name, version))
        if servable is None:
            return self._demand(name) is not None
        return not servable.problem

    def servables(self) -> Iterator[Servable]:
        """Yield every model version, by name and then by version."""
        for name in sorted(self._models):
            yield from self._models[name].serving.values()

    def ready_names(self) -> list[str]:
        """Return the names of models with a version that can answer, sorted."""
        return sorted({servable.name for servable in self.servables() if not servable.problem})

    def selected(self, name: str, version: str) -> list[Servable]:
        """Return all versions for no name, one model's for no version, else the one; raises NotFound."""
        if not name:
            return list(self.servables())
        if not version and name in self._models and self._models[name].serving:
            return list(self._models[name].serving.values())
        return [self.servable(name, version)]

    async def statistics(self, name: str = "", version: str = "") -> Any:
        """Return the ModelStatisticsResponse of what `selected` returns; raises NotFound."""
        return statistics_message(self.selected(name, version))

    def server_metadata(self) -> dict[str, Any]:
        """Return V2 server metadata, without extensions whose calls are closed."""
        found = [*EXTENSIONS, *(["system_shared_memory"] if self.shared_memory.allowed else [])]
        extensions = [each for each in found if self._control_calls or each not in CONTROL_EXTENSIONS]
        return {"name": self._name, "version": __version__, "extensions": extensions}

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return V2 model metadata."""
        servable = self.servable(name, version)
        return {
            "name": servable.name,
            "versions": [str(version) for version in self._models[name].serving],
            "platform": servable.config.platform,
            "inputs": servable.metadata_tensors(servable.config.inputs),
            "outputs": servable.metadata_tensors(servable.config.outputs),
        }

    async def index(self, *, ready_only: bool, repository: str = "") -> list[IndexEntry]:
        """Return every version of every model that is known or in the repositories, by name.

        Args:
            repository: name of the only repository to list.
        """
        if self._control.mode is ControlMode.EXPLICIT:  # in the other modes the repositories are known
            try:
                await self._lifecycle.scan()
            except ModelError as error:  # loaded models can be listed without the repository
                logger.warning("%s", error)
        if repository and repository not in self._repository.names():
            known = ", ".join(sorted(self._repository.names()))
            raise NotFound(f"there is no repository '{repository}'; there are {known}")
        models = [self._models[name] for name in sorted(self._models)]
        entries = [entry for model in models if repository in ("", model.repository) for entry in model.index()]
        return [entry for entry in entries if entry.state == "READY"] if ready_only else entries

    def series(self) -> list[ModelSeries]:
        """Return the data of the metrics page."""
        if self._source is not None:
            return self._source.series()
        return [
            ModelSeries(
                servable.name,
                servable.version,
                servable.counts,
                servable.scheduler.pending,
                servable.config.metrics.tags,
                servable.memory_bytes,
            )
            for servable in self.servables()
        ]

    def close(self) -> None:
        self._controller.close()
        if self._on_demand is not None:
            self._on_demand.close()
        self._lifecycle.close()
        self._roots.close()

    def _unknown(self, name: str, version: str) -> ServingError:
        model = self._models.get(name)
        if model is None and self._source is not None:
            why = "the server is stopping" if self.draining else "send the request again"
            return Unavailable(f"model '{name}' is not loaded now; {why}")
        if model is None:
            return NotFound(f"unknown model '{name}' is not found")
        if not model.serving:
            hint = "; its first inference request loads it" if self._demand(name) is not None else ""
            return Unavailable(f"model '{name}' is not ready: {model.reason}{hint}")
        versions = ", ".join(str(version) for version in model.serving)
        return NotFound(f"model '{name}' has no version '{version}'; it serves {versions}")


class _Alone:
    """The server's interface to servables that have no other models: those of many services (Answering)."""

    def __init__(self, engine: Engine) -> None:
        self.response_cache = engine.response_cache
        self.rate_limiter = engine.rate_limiter

    def infer_step(self, request: InferRequest, on_done: OnDone) -> Cancellable:  # noqa: ARG002 - refused
        raise Unsupported(
            f"model '{request.model_name}' cannot be called: the models of a pool call no others; give the service "
            "replicas of its own"
        )

    def stream_step(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        return self.infer_step(request, on_done)

    def serves(self, name: str, version: str) -> bool:  # noqa: ARG002 - none of them
        return False

    def labels(self, name: str, version: str) -> classification.Labels:  # noqa: ARG002 - none of them
        return classification.NO_LABELS


def _answering_classes(request: InferRequest, servable: Servable, on_done: OnDone) -> OnDone:
    config = servable.config
    try:
        classification.check(request.classes, config.outputs)
    except ServingError as error:
        counting.refuse(servable.statistics, error.reason)
        raise
    return classification.answering(request.classes, servable.labels, on_done, batched=config.max_batch_size > 0)
