"""Regression to detect, the basis of a rollout's forecast: the `detect` of a step's `analysis`. Pure."""

from dataclasses import dataclass

from common.files.document import Document
from deployments.domain.policy.quality import Quality


@dataclass(frozen=True, slots=True)
class Detect:
    """The severity of a regression; the forecast computes in how many requests it is found. No effect on verdicts.

    Attributes:
        error_percent: of its requests fail.
        slow_percent: of its requests are slow; None where latency is not gated.
        quality_worse: its answers are worse than stable's by so much, in the scorer's unit; None where labels are not
            gated.
    """

    error_percent: float = 5.0
    slow_percent: float | None = 30.0
    quality_worse: float | None = None


def parse_detect(
    document: Document, max_errors: float, max_slow: float | None, quality: Quality | None = None
) -> Detect:
    """Return the stated regression; by default five times the errors, twice the slow requests, thrice `maxWorse`.

    Args:
        max_errors, max_slow: the gate's limits in percent.
    """
    default_errors = min(100.0, max(5 * max_errors, max_errors + 4))
    errors = document.number("errorPercent", minimum=0, maximum=100, default=default_errors)
    slow = None
    if max_slow is not None:
        slow = document.number("slowPercent", minimum=0, maximum=100, default=min(100.0, 2 * max_slow))
    worse = None
    if quality is not None:
        worse = document.number("qualityWorse", minimum=0, maximum=1e12, default=3 * quality.max_worse)
    document.refuse_unknown()
    return Detect(errors, slow, worse)


def check_detect(
    document: Document, detect: Detect, max_errors: float, max_slow: float | None, quality: Quality | None = None
) -> None:
    """Report a regression within the limits, which no analysis could find."""
    stated_limits = (
        ("errorPercent", detect.error_percent, max_errors),
        ("slowPercent", detect.slow_percent, max_slow),
    )
    for name, stated, limit in stated_limits:
        if stated is not None and limit is not None and stated <= limit < 100:
            document.fault(
                name, f"is {stated:g}, which is within the limit of {limit:g}; state a regression beyond the limit"
            )
    if quality is not None and detect.quality_worse is not None and 0 < detect.quality_worse <= quality.max_worse:
        document.fault(
            "qualityWorse",
            f"is {detect.quality_worse:g}, which is within quality.maxWorse of {quality.max_worse:g}; state a "
            "regression beyond the limit",
        )


def detect_json(detect: Detect) -> dict[str, float]:
    """Return the `detect` part of a gate."""
    slow = {} if detect.slow_percent is None else {"slowPercent": detect.slow_percent}
    worse = {} if detect.quality_worse is None else {"qualityWorse": detect.quality_worse}
    return {"errorPercent": detect.error_percent, **slow, **worse}
