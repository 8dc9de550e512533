"""What is known of each model: which versions there are, how far each has come, and which of them answer.

    (unknown) --load--> LOADING --> READY --unload--> UNLOADING --> UNAVAILABLE "unloaded"
                           `--> UNAVAILABLE "why it did not load"

A version that is READY stays so while a reload prepares its successor, and when that fails.
"""

import asyncio
import enum
from collections.abc import Iterable
from dataclasses import dataclass

from serving_runtime.common.errors import ServingError
from serving_runtime.engine.catalog.repository import Marks
from serving_runtime.engine.loading.load_model import LoadPlan, VersionError
from serving_runtime.engine.servables.servable import Servable

UNLOADED = "unloaded"


class State(enum.Enum):
    """Triton's names (model repository extension)."""

    LOADING = "LOADING"
    READY = "READY"
    UNLOADING = "UNLOADING"
    UNAVAILABLE = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of the repository index; `version` is empty where the model has none that is known."""

    name: str
    version: str
    state: str
    reason: str


class Model:
    """One name. Lives on the event loop.

    Attributes:
        repository: the name of the one it was last found in; empty for none or several.
        serving: the versions that answer, ascending.
        loaded: what they were loaded from.
        tried: the marks of the files as they were last looked at; None when that is to be forgotten.
        by_name: loaded for its own sake, not as a part of an ensemble.
        parts: the models of an ensemble's steps, as it was last looked at.
        measured_bytes: memory that versions were found to take, by number and size of their files.
        lock: held by whoever loads or unloads it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.repository = ""
        self.serving: dict[int, Servable] = {}
        self.loaded: LoadPlan | None = None
        self.tried: Marks | None = None
        self.by_name = False
        self.parts: tuple[str, ...] = ()
        self.measured_bytes: dict[tuple[int, int], int] = {}
        self.lock = asyncio.Lock()
        self._states: dict[int, tuple[State, str]] = {}
        self._failure = ""

    def loading(self, versions: Iterable[int]) -> None:
        """Note that versions are being prepared; those that answer go on doing so."""
        self._failure = ""
        for version in versions:
            if version not in self.serving:
                self._states[version] = State.LOADING, ""

    def failed(self, error: ServingError) -> None:
        """Note why a load failed; where an older load still answers, that is no state of the model."""
        reason = str(error)
        for version, (state, _) in self._states.items():
            if state is State.LOADING:
                mine = not isinstance(error, VersionError) or error.version == version
                self._states[version] = State.UNAVAILABLE, reason if mine else f"not loaded: {reason}"
        if not self.serving:
            self._failure = reason

    def serve(self, serving: dict[int, Servable], loaded: LoadPlan | None) -> None:
        """Note which versions answer from now on; all others are on their way out."""
        for version in self.serving.keys() - serving.keys():
            self._states[version] = State.UNLOADING, ""
        for version in serving:
            self._states[version] = State.READY, ""
        self.serving = serving
        self.loaded = loaded
        self._failure = ""

    def gone(self, version: int) -> None:
        """Note that a version has answered its last request."""
        if self._states.get(version, (None,))[0] is State.UNLOADING:
            self._states[version] = State.UNAVAILABLE, UNLOADED

    def forget(self) -> None:
        """Note that nobody wants the model any more, so that its not being there is no failure."""
        self._failure = ""
        self.tried = None
        self.by_name = False
        for version, (state, _) in self._states.items():
            if state is State.UNAVAILABLE:
                self._states[version] = State.UNAVAILABLE, UNLOADED

    @property
    def broken(self) -> bool:
        """Return whether the model is wanted, but not there."""
        return bool(self._failure)

    @property
    def is_over(self) -> bool:
        """Return whether nothing of the model is left, nor wanted."""
        at_rest = all(state is State.UNAVAILABLE for state, _ in self._states.values())
        return at_rest and not (self.serving or self.broken or self.lock.locked())

    @property
    def reason(self) -> str:
        """Return why it does not answer."""
        if any(state is State.LOADING for state, _ in self._states.values()):
            return "it is being loaded"
        return self._failure or "it is unloaded"

    def index(self) -> list[IndexEntry]:
        if not self._states:
            return [IndexEntry(self.name, "", State.UNAVAILABLE.value, self._failure or UNLOADED)]
        return [self._entry(version, state, reason) for version, (state, reason) in sorted(self._states.items())]

    def _entry(self, version: int, state: State, reason: str) -> IndexEntry:
        if state is State.READY and self.serving[version].problem:
            state, reason = State.UNAVAILABLE, self.serving[version].problem
        return IndexEntry(self.name, str(version), state.value, reason)
