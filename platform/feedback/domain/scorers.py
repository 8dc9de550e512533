"""Scorers: the unit in which people read a loss. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a scorer: a loss times `scale` is the number that people read."""

    name: str
    scale: float


_UNITS = {"logLoss": "nats", "brier": "Brier score", "absoluteError": "absolute error", "squaredError": "squared error"}


def unit_of(kind: str, options: Mapping[str, Any]) -> Unit:
    """Return the unit of a scorer."""
    bound = float(options.get("bound", 1.0))
    if kind in _UNITS:
        return Unit(_UNITS[kind], {"brier": 2.0, "squaredError": bound**2}.get(kind, bound))
    if kind == "costMatrix":
        return Unit("cost", max(float(cost) for row in options["costs"] for cost in row))
    if kind == "reward":
        return Unit("reward lost", float(options["high"]) - float(options["low"]))
    return Unit("percent wrong", 100.0)
