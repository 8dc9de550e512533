"""What the reconciler counts of itself; shown on the metrics page of the process that runs it (the worker)."""

from prometheus_client import Histogram

RECONCILE_DURATION = Histogram(
    "fairlead_reconcile_duration_seconds",
    "Duration of one reconciler tick of one service, by what became of it.",
    ["outcome"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
