"""Model and version states (Triton: model repository index).

    (unknown) --load--> LOADING --> READY --unload--> UNLOADING --> UNAVAILABLE "unloaded"
                           `--> UNAVAILABLE "why it did not load"

A version that is READY stays so while a reload prepares its successor, and when the reload fails.
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
    """One line of the repository index; `version` is empty for a model without known versions."""

    name: str
    version: str
    state: str
    reason: str


class Model:
    """One model name. Lives on the event loop.

    Attributes:
        repository: name of the one it was last found in; empty for none or several.
        serving: the versions that answer, ascending.
        loaded: the plan they were loaded by.
        tried: the marks of the files at the last load; None after an unload, or a load by a request's own config.
        by_name: loaded for its own sake, not as a part of an ensemble.
        parts: the models of an ensemble's steps, as of the last load.
        measured_bytes: measured memory of versions, by number and size of their files.
        lock: held during a load or unload.
        changes: how many loads and unloads hold the lock or wait for it.
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
        self.changes = 0
        self._states: dict[int, tuple[State, str]] = {}
        self._failure = ""

    def loading(self, versions: Iterable[int]) -> None:
        """Mark versions as loading; those that answer go on doing so."""
        self._failure = ""
        for version in versions:
            if version not in self.serving:
                self._states[version] = State.LOADING, ""

    def failed(self, error: ServingError) -> None:
        """Record why a load failed; where an older load still answers, the model's state does not change."""
        reason = str(error)
        for version, (state, _) in self._states.items():
            if state is State.LOADING:
                mine = not isinstance(error, VersionError) or error.version == version
                self._states[version] = State.UNAVAILABLE, reason if mine else f"not loaded: {reason}"
        if not self.serving:
            self._failure = reason

    def serve(self, serving: dict[int, Servable], loaded: LoadPlan | None) -> None:
        """Record the versions that answer from now on; all others are being unloaded."""
        for version in self.serving.keys() - serving.keys():
            self._states[version] = State.UNLOADING, ""
        for version in serving:
            self._states[version] = State.READY, ""
        self.serving = serving
        self.loaded = loaded
        self._failure = ""

    def gone(self, version: int) -> None:
        """Record that a version has answered its last request."""
        if self._states.get(version, (None,))[0] is State.UNLOADING:
            self._states[version] = State.UNAVAILABLE, UNLOADED

    def forget(self) -> None:
        """Record that the model is no longer wanted, so that its absence is no failure."""
        self._failure = ""
        self.tried = None
        self.by_name = False
        for version, (state, _) in self._states.items():
            if state is State.UNAVAILABLE:
                self._states[version] = State.UNAVAILABLE, UNLOADED

    @property
    def broken(self) -> bool:
        """Return whether the model is wanted, but not loaded."""
        return bool(self._failure)

    @property
    def at_rest(self) -> bool:
        """Return whether no version is being loaded or unloaded."""
        return all(state in (State.UNAVAILABLE, State.READY) for state, _ in self._states.values())

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
