"""Scorers: the unit in which people read a loss. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a scorer: a loss times `scale` is the number that people read."""

    name: str
    scale: float


def unit_of(kind: str, options: Mapping[str, Any]) -> Unit:
    """Return the unit of a scorer."""
    match kind:
        case "logLoss":
            return Unit("nats", float(options["bound"]))
        case "brier":
            return Unit("Brier score", 2.0)
        case "absoluteError":
            return Unit("absolute error", float(options["bound"]))
        case "squaredError":
            return Unit("squared error", float(options["bound"]) ** 2)
        case "costMatrix":
            return Unit("cost", max(float(cost) for row in options["costs"] for cost in row))
        case "reward":
            return Unit("reward lost", float(options["high"]) - float(options["low"]))
        case _:
            return Unit("percent wrong", 100.0)
