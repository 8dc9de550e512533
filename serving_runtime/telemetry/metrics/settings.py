"""Values of --metrics-config; plain, so that the command line is parsed without further imports."""

from dataclasses import dataclass

DEFAULT_QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Metrics beside counts, gauges and our histograms.

    Attributes:
        counter_latencies: the duration counters.
        summary_latencies: summaries of the durations.
        histogram_latencies: time to first response of decoupled models.
    """

    counter_latencies: bool = True
    summary_latencies: bool = False
    summary_quantiles: tuple[float, ...] = DEFAULT_QUANTILES
    histogram_latencies: bool = False
