"""Regression to detect, the basis of a rollout's forecast: the `detect` of a step's `analysis`. Pure."""

from dataclasses import dataclass

from common.document import Document
from common.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Detect:
    """The severity of a regression; the forecast computes in how many requests it is found. No effect on verdicts.

    Attributes:
        error_percent: of its requests fail.
        slow_percent: of its requests are slow; None where latency is not gated.
    """

    error_percent: float = 5.0
    slow_percent: float | None = 30.0


def parse_detect(document: Document | None, path: str, max_errors: float, max_slow: float | None) -> Detect:
    """Return the stated regression; by default five times the errors and twice the slow requests.

    Args:
        max_errors, max_slow: the gate's limits in percent.

    Raises:
        InvalidInput: it is within the limits, so that no analysis could find it.
    """
    document = Document({}, path) if document is None else document
    default_errors = min(100.0, max(5 * max_errors, max_errors + 4))
    errors = document.number("errorPercent", minimum=0, maximum=100, default=default_errors)
    slow = None
    if max_slow is not None:
        slow = document.number("slowPercent", minimum=0, maximum=100, default=min(100.0, 2 * max_slow))
    document.refuse_unknown()
    for name, stated, limit in (("errorPercent", errors, max_errors), ("slowPercent", slow, max_slow)):
        if stated is not None and limit is not None and stated <= limit < 100:
            raise InvalidInput(
                f"{document.path(name)} is {stated:g}, which is within the limit of {limit:g}; state a regression "
                "beyond the limit",
                field=document.path(name),
            )
    return Detect(errors, slow)


def detect_json(detect: Detect) -> dict[str, float]:
    """Return the `detect` part of a gate."""
    slow = {} if detect.slow_percent is None else {"slowPercent": detect.slow_percent}
    return {"errorPercent": detect.error_percent, **slow}
