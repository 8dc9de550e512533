"""What --metrics-config says; plain values, so that the command line is read without anything else."""

from dataclasses import dataclass

DEFAULT_QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """What the metrics page shows beside counts, gauges and our histograms.

    Attributes:
        counter_latencies: the duration counters.
        summary_latencies: summaries of the durations.
        histogram_latencies: how long first responses of decoupled models take.
    """

    counter_latencies: bool = True
    summary_latencies: bool = False
    summary_quantiles: tuple[float, ...] = DEFAULT_QUANTILES
    histogram_latencies: bool = False
