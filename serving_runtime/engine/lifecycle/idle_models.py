"""Idle models, which can be unloaded to make room, and the memory that a load needs. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from serving_runtime.engine.lifecycle.ensemble_dependencies import orphans
from serving_runtime.engine.lifecycle.states import Model
from serving_runtime.engine.loading.load_model import LoadPlan
from serving_runtime.engine.memory.admission import Unused
from serving_runtime.engine.memory.budget import estimate_bytes


def unused(models: Mapping[str, Model]) -> Iterator[Unused]:
    """Yield the idle models; an ensemble together with the models loaded only for it."""
    wanted = [model for model in models.values() if model.serving or model.lock.locked()]
    parts = {part for model in wanted for part in model.parts}
    for model in models.values():
        if not model.serving or model.name in parts:
            continue
        together = [model, *(models[name] for name in loaded_for(model, models))]
        servables = [servable for member in together for servable in member.serving.values()]
        if not any(member.lock.locked() for member in together) and not any(servable.busy for servable in servables):
            last_used_ms = max(servable.last_used_ms for servable in servables)
            yield Unused(model.name, last_used_ms, tuple(servable.model for servable in servables))


def loaded_for(ensemble: Model, models: Mapping[str, Model]) -> list[str]:
    """Return the models of an ensemble's steps that nothing else needs."""
    if not ensemble.parts:
        return []
    return orphans(ensemble.parts, {name: model for name, model in models.items() if model is not ensemble})


def needs(model: Model, plan: LoadPlan, versions: Iterable[int]) -> dict[int, int]:
    """Return how many bytes each version may take while it is opened."""
    sizes = {version: plan.file_bytes[version] for version in versions}
    return {
        version: max(estimate_bytes(size), model.measured_bytes.get((version, size), 0))
        for version, size in sizes.items()
    }
