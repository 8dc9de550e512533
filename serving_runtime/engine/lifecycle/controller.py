"""Model control: loads and unloads models at the start, on changes in the repositories, and by clients' calls."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from serving_runtime.common.errors import Forbidden, ModelError, NotFound, ServingError, Unavailable
from serving_runtime.engine.catalog import load_override
from serving_runtime.engine.lifecycle import ensemble_dependencies
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode, changes
from serving_runtime.engine.lifecycle.model_lifecycle import Lifecycle

logger = logging.getLogger(__name__)


class Controller:
    """Applies the control mode. Lives on one event loop.

    Args:
        stopping: returns whether the server is shutting down.
    """

    def __init__(self, lifecycle: Lifecycle, control: Control, stopping: Callable[[], bool]) -> None:
        self._lifecycle = lifecycle
        self._models = lifecycle.models
        self._control = control
        self._stopping = stopping
        self._polling: asyncio.Task[None] | None = None

    async def load_all(self) -> list[ServingError]:
        """Load the models of the control mode at the start; returns failures, by model.

        A name that is in two repositories is unavailable, but not a failure. Raises ModelError for a repository that
        cannot be read.
        """
        found = await self._lifecycle.scan()
        for name, place in found.items():
            if isinstance(place, ModelError):
                self._models[name].failed(place)
                logger.error("%s", place)
        wanted = [name for name in self._control.wanted_at_start(found) if not isinstance(found.get(name), ModelError)]
        outcomes = await asyncio.gather(*[self._load_at_start(name) for name in wanted])
        return [error for error in outcomes if error is not None]

    async def _load_at_start(self, name: str) -> ServingError | None:
        try:
            await self._lifecycle.load(await self._lifecycle.find(name))
        except ServingError as error:
            return error
        self._models[name].by_name = True
        return None

    def start_polling(self) -> None:
        """Poll the repositories from now on, in poll mode."""
        if self._control.mode is ControlMode.POLL and self._control.poll_secs:
            self._polling = asyncio.get_running_loop().create_task(self._poll_forever())

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.sleep(self._control.poll_secs)
            if self._stopping():
                return
            try:
                await self.poll()
            except ServingError as error:  # a repository that cannot be read now may be readable later
                logger.error("%s", error)
            except Exception:  # a bug here must not end the polling
                logger.exception("looking at the repositories failed")

    async def poll(self) -> None:
        """Load models that were added or changed in the repositories, unload removed ones; failures are logged."""
        found = await self._lifecycle.scan()
        todo = changes(found, self._models, on_demand=self._control.on_demand)
        for name, error in todo.refuse.items():
            self._models[name].failed(error)
        outcomes = await asyncio.gather(
            *[self._lifecycle.load(place) for place in todo.load],
            *[self._lifecycle.unload(name) for name in todo.unload],
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, ServingError):
                logger.error("%s", outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        await self._follow([place.name for place in todo.load])

    async def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model, beside the version that answers now (Triton: model repository extension).

        Args:
            config: JSON of a ModelConfig to use in place of the repository's.
            files: by their path in the model's folder, in place of the whole folder.

        Raises ServingError; the model is then as it was. InvalidArgument is for the request's own config and files,
        NotAllowed for code that the operator does not allow; a repository's model that cannot be served is a
        ModelError.
        """
        self._check_explicit()
        brought = load_override.parse(name, config, files or {})
        try:
            if brought is None:
                await self._lifecycle.load(await self._lifecycle.find(name))
            else:
                await self._lifecycle.load_override(name, brought)
        except ModelError as error:
            raise load_override.refusal(error, brought) from error
        self._models[name].by_name = True
        await self._follow([name])

    async def unload(self, name: str, *, dependents: bool = False) -> None:
        """Unload a model; accepted requests are answered. Raises NotFound for an unknown name.

        Args:
            dependents: also unload the models of an ensemble's steps that were loaded only for it.
        """
        self._check_explicit()
        if name not in self._models:
            raise NotFound(f"failed to unload '{name}', there is no such model")
        model = self._models[name]
        await self._lifecycle.unload(name)
        if dependents:
            for part in ensemble_dependencies.orphans(model.parts, self._models):
                await self.unload(part, dependents=True)

    async def _follow(self, changed: Sequence[str]) -> None:
        """Reload the ensembles that have one of the models as a part; failures are logged."""
        seen: set[str] = set()
        while names := [
            name for name in ensemble_dependencies.dependents(changed, self._models.values()) if name not in seen
        ]:
            seen.update(names)
            for name in names:
                try:
                    await self._lifecycle.load(await self._lifecycle.find(name))
                except ServingError as error:
                    logger.error("%s", error)
            changed = names

    def _check_explicit(self) -> None:
        mode = self._control.mode
        if mode is not ControlMode.EXPLICIT:
            raise Forbidden(
                f"explicit model load / unload is not allowed with --model-control-mode={mode.value}; "
                "start the server with --model-control-mode=explicit"
            )
        if self._stopping():
            raise Unavailable("the server is stopping; it loads and unloads no models any more")

    def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
