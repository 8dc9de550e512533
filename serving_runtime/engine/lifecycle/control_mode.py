"""Model control modes (Triton: model management): none, poll, explicit."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog.repository import Found
from serving_runtime.engine.lifecycle.states import Model

ALL = "*"


class ControlMode(enum.Enum):
    """--model-control-mode."""

    NONE = "none"
    POLL = "poll"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Control:
    """Command line options on when to load.

    Attributes:
        load_models: names to load at the start in explicit mode; "*" means all.
        poll_secs: interval of scans of the repositories in poll mode.
        load_threads: number of models that are opened at the same time.
        memory_budget_bytes: for all models together; None for no limit.
        on_demand: models are loaded by their first request, and idle ones make room for them.
        on_demand_timeout_s: the longest wait of such a request.
        cache_directory: for copies of models in object stores.
    """

    mode: ControlMode = ControlMode.NONE
    load_models: tuple[str, ...] = ()
    poll_secs: int = 15
    load_threads: int = 4
    memory_budget_bytes: int | None = None
    on_demand: bool = False
    on_demand_timeout_s: float = 30.0
    cache_directory: Path | None = None

    def wanted_at_start(self, known: dict[str, Any]) -> list[str]:
        """Return the names to load at the start."""
        if self.on_demand:
            return []
        if self.mode is not ControlMode.EXPLICIT or ALL in self.load_models:
            return list(known)
        return list(dict.fromkeys(self.load_models))


@dataclass(frozen=True, slots=True)
class Changes:
    """Loads and unloads that a scan of the repositories requires."""

    load: list[Found]
    refuse: dict[str, ModelError]
    unload: list[str]


def changes(found: dict[str, Found | ModelError], models: dict[str, Model], *, on_demand: bool = False) -> Changes:
    """Return the models that were added, changed or removed since each was last examined. Pure.

    A model that failed to load is tried again only when its files change. On demand only models that are loaded are
    loaded again.
    """
    load, refuse = [], {}
    for name, place in found.items():
        model = models.get(name)
        if isinstance(place, ModelError):
            refuse[name] = place
        elif (model is None or model.tried != place.marks) and not (on_demand and _sleeps(model)):
            load.append(place)
    gone = [name for name, model in models.items() if name not in found and (model.serving or model.broken)]
    return Changes(load, refuse, gone)


def _sleeps(model: Model | None) -> bool:
    return model is None or not model.serving
