"""Traffic of a service, as lists and pages show it."""

from dataclasses import dataclass

BARS = 40
"""Bars of the drawn time."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A service's traffic in figures.

    Attributes:
        per_second: requests of clients now; None without a recent sample.
        rates: requests per second over the drawn time, oldest first, evenly spaced; None without a sample.
        requests: of the last five minutes, or since the last sample where samples are rarer; the base of the next two.
        error_percent: the percentage with server errors; None without requests.
        p99_ms: their 99th percentile latency; None without any.
    """

    per_second: float | None
    rates: tuple[float | None, ...]
    requests: int
    error_percent: float | None
    p99_ms: float | None


NO_TRAFFIC = Traffic(None, (None,) * BARS, 0, None, None)
