"""Request timeout and rolling update of a service file (KServe's words). Pure.

Both belong to the service and not to a revision: a route has one timeout for all its revisions.
"""

import re
from typing import Any

from common.files.document import Document
from integrations.clusters.base import Rolling

_LONGEST_S = 86_400
_MOST = 100
_PERCENT = re.compile(r"([0-9]{1,2}|100)%")
_ROLLING, _RECREATE = "RollingUpdate", "Recreate"


def parse_timeout(predictor: Document) -> int:
    """Return the timeout of an HTTP request in seconds; 0 where the file has none."""
    if predictor.raw("timeout", None) is None:
        return 0
    return predictor.integer("timeout", minimum=1, maximum=_LONGEST_S)


def parse_rolling(predictor: Document, min_replicas: int) -> Rolling | None:
    """Return the `deploymentStrategy`; None without one.

    Raises:
        InvalidInput: a value is wrong, or allows a time without any serving replica.
    """
    strategy = predictor.optional("deploymentStrategy")
    if strategy is None:
        return None
    kind = strategy.text("type", default=_ROLLING)
    if kind == _RECREATE:
        strategy.fault(
            "type",
            f"is {_RECREATE}, by which all replicas end before a new one starts, so that requests would fail; choose "
            f"{_ROLLING}",
        )
    elif kind != _ROLLING:
        strategy.fault("type", f"is {kind[:60]!r}; expected {_ROLLING}")
    numbers = strategy.or_empty("rollingUpdate")
    rolling = Rolling(_amount(numbers, "maxSurge", 1), _amount(numbers, "maxUnavailable", 0))
    numbers.refuse_unknown()
    strategy.refuse_unknown()
    is_sound = numbers.is_sound() and predictor.is_sound("minReplicas")
    if is_sound and not rolling.leaves_one(min_replicas):
        numbers.fault(
            "maxUnavailable",
            f"is {rolling.max_unavailable} and maxSurge {rolling.max_surge}: of {min_replicas} "
            f"{'replica' if min_replicas == 1 else 'replicas'} (minReplicas) none might serve while they are replaced; "
            "let maxSurge be more, maxUnavailable less, or minReplicas more",
        )
    return rolling


def rolling_json(rolling: Rolling | None) -> dict[str, int | str] | None:
    """Return it in its stored form."""
    if rolling is None:
        return None
    return {"maxSurge": rolling.max_surge, "maxUnavailable": rolling.max_unavailable}


def stored_rolling(stored: dict[str, Any] | None) -> Rolling | None:
    """Return it from its stored form."""
    return None if stored is None else Rolling(stored["maxSurge"], stored["maxUnavailable"])


def _amount(numbers: Document, name: str, default: int) -> int | str:
    value = numbers.raw(name, default)
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    numbers.fault(name, f"is {str(value)[:60]!r}; expected a number from 0 to {_MOST}, or a percentage such as 25%")
    return default
