"""Ensemble dependencies: step models are loaded before the ensemble, followed when they change, unloaded with it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.engine.lifecycle.states import Model


class Parts:
    """Loads the models that ensembles need. Lives on one event loop.

    Args:
        load: loads a model of the repositories by name; raises ServingError.
    """

    def __init__(self, models: Mapping[str, Model], load: Callable[[str], Awaitable[None]]) -> None:
        self._models = models
        self._load = load
        self._waiting: dict[str, Sequence[str]] = {}

    async def ensure(self, name: str, parts: Sequence[str]) -> None:
        """Return when all parts of an ensemble are loaded; its lock is held, so it must not wait for itself.

        Raises ModelError where a part cannot be loaded, or is, by its own parts, the ensemble itself.
        """
        for part in parts:
            way = self._way(part, name)
            if way:
                raise ModelError(f"circular dependency between ensembles: {' -> '.join([name, *way])}")
        self._waiting[name] = parts
        try:
            for part in parts:
                await self._ensure_one(name, part)
        finally:
            del self._waiting[name]

    async def _ensure_one(self, name: str, part: str) -> None:
        model = self._models.get(part)
        if model is not None:
            async with model.lock:  # another load or unload of it ends first
                if model.serving:
                    return
        try:
            await self._load(part)
        except ServingError as error:
            raise ModelError(f"ensemble '{name}' contains model '{part}', which is not available: {error}") from error

    def _way(self, start: str, goal: str) -> list[str]:
        """Return the path from one model to another by loads that wait for each other; empty without one."""
        if start == goal:
            return [goal]
        for part in self._waiting.get(start, ()):
            way = self._way(part, goal)
            if way:
                return [start, *way]
        return []


def dependents(changed: Iterable[str], models: Iterable[Model]) -> list[str]:
    """Return the ensembles, wanted or loaded, that have one of the models as a part. Pure.

    Those loaded by a request's own config are left out: the repository's files do not apply to them.
    """
    names = frozenset(changed)
    return [
        model.name
        for model in models
        if names.intersection(model.parts) and model.tried is not None and (model.serving or model.broken)
    ]


def orphans(parts: Iterable[str], models: Mapping[str, Model]) -> list[str]:
    """Return the parts of an unloaded ensemble that were loaded only for it. Pure."""
    needed = {part for model in models.values() if model.serving for part in model.parts}
    return [part for part in parts if part in models and not models[part].by_name and part not in needed]
