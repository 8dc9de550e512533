"""All models of a server: the one object that protocols talk to."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_runtime import __version__
from serving_runtime.engine import loading, repository
from serving_runtime.engine.decoupled import DecoupledServable
from serving_runtime.engine.loading import LoadSettings, OpenedModel
from serving_runtime.engine.servable import Servable
from serving_runtime.engine.warmup import begins_inline
from serving_runtime.errors import ModelError, NotFound
from serving_runtime.request import InferRequest, OnDone
from serving_runtime.scheduler.job import Job
from serving_runtime.telemetry.exposition import ModelSeries

SERVER_NAME = "fairlead"
EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository", "schedule_policy", "statistics")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of the repository index (Triton: model repository extension)."""

    name: str
    version: str
    state: str
    reason: str


class Engine:
    """Loads the models of the repositories and finds them for requests. Lives on one event loop."""

    def __init__(self, roots: Sequence[Path], settings: LoadSettings, *, strict_readiness: bool = True) -> None:
        self._roots = roots
        self._settings = settings
        self._strict_readiness = strict_readiness
        self._models: dict[str, dict[str, Servable]] = {}
        self._servables: dict[tuple[str, str], Servable] = {}
        self._failed: list[IndexEntry] = []
        self.draining = False

    def load_all(self) -> list[ModelError]:
        """Load every model of the repositories; returns what failed, by model. A model loads whole or not at all."""
        errors = []
        for folder in repository.scan(self._roots):
            try:
                self._models[folder.name] = self._load(folder)
            except ModelError as error:
                errors.append(error)
                self._failed.append(IndexEntry(folder.name, "", "UNAVAILABLE", str(error)))
                continue
            for servable in self._models[folder.name].values():  # ascending: the highest becomes the default
                self._servables[servable.name, servable.version] = servable
                self._servables[servable.name, ""] = servable
        return errors

    def _load(self, folder: repository.ModelFolder) -> dict[str, Servable]:
        written = loading.read_config(folder, self._settings)
        versions = repository.chosen_versions(folder.versions, written.version_policy, folder.name)
        opened = {str(number): loading.open_version(folder, number, written, self._settings) for number in versions}
        servables = {}
        for version, model in opened.items():
            servables[version] = servable = make_servable(version, model)
            where = "inline" if servable.scheduler.inline else "threaded"
            logger.info("loaded model '%s' version %s (%s)", folder.name, version, where)
        return servables

    @property
    def ready(self) -> bool:
        """Return whether the server wants requests: not draining, and every model loaded where that is asked for."""
        return not self.draining and not (self._strict_readiness and self._failed)

    @property
    def inflight(self) -> int:
        return sum(servable.statistics.inflight for servable in self.servables())

    def infer(self, request: InferRequest, on_done: OnDone) -> Job:
        """Start a request; the job can be cancelled. Raises ServingError when it is refused right away."""
        servable = self._servables.get((request.model_name, request.model_version))
        if servable is None:
            raise self._unknown(request.model_name, request.model_version)
        return servable.infer(request, on_done)

    def stream(self, request: InferRequest, on_done: OnDone) -> Job:
        """Do as `infer`, for a caller that takes any number of answers: the way to decoupled models."""
        return self.servable(request.model_name, request.model_version).stream(request, on_done)

    def servable(self, name: str, version: str = "") -> Servable:
        """Return a model version, the default one for no version; raises NotFound."""
        servable = self._servables.get((name, version))
        if servable is None:
            raise self._unknown(name, version)
        return servable

    def model_ready(self, name: str, version: str = "") -> bool:
        return not self.draining and (name, version) in self._servables

    def servables(self) -> Iterator[Servable]:
        """Yield every model version, by name and then by version."""
        for name in sorted(self._models):
            yield from self._models[name].values()

    def selected(self, name: str, version: str) -> list[Servable]:
        """Return all versions for no name, one model's for no version, else the one; raises NotFound."""
        if not name:
            return list(self.servables())
        if not version and name in self._models:
            return list(self._models[name].values())
        return [self.servable(name, version)]

    def server_metadata(self) -> dict[str, Any]:
        return {"name": SERVER_NAME, "version": __version__, "extensions": list(EXTENSIONS)}

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return V2 model metadata."""
        servable = self.servable(name, version)
        return {
            "name": name,
            "versions": list(self._models[name]),
            "platform": servable.config.platform,
            "inputs": servable.metadata_tensors(servable.config.inputs),
            "outputs": servable.metadata_tensors(servable.config.outputs),
        }

    def index(self, *, ready_only: bool) -> list[IndexEntry]:
        entries = [IndexEntry(servable.name, servable.version, "READY", "") for servable in self.servables()]
        return entries if ready_only else [*entries, *self._failed]

    def series(self) -> list[ModelSeries]:
        """Return what the metrics page is rendered from."""
        return [
            ModelSeries(servable.name, servable.version, servable.statistics, servable.scheduler.pending)
            for servable in self.servables()
        ]

    def close(self) -> None:
        for servable in self.servables():
            servable.scheduler.close()

    def _unknown(self, name: str, version: str) -> NotFound:
        if name not in self._models:
            return NotFound(f"unknown model '{name}' is not found")
        versions = ", ".join(self._models[name])
        return NotFound(f"model '{name}' has no version '{version}'; it serves {versions}")


def make_servable(version: str, opened: OpenedModel) -> Servable:
    """Return an opened version with the scheduler that its config asks for."""
    config, model = opened.config, opened.model
    if config.decoupled:
        return DecoupledServable(version=version, message=opened.message, config=config, model=model, inline=False)
    inline = begins_inline(model, config)
    return Servable(version=version, message=opened.message, config=config, model=model, inline=inline)
