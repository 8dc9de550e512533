"""Self-monitoring metrics of the reconciler (in the worker) and the watcher, on their processes' metrics pages."""

from prometheus_client import Counter, Gauge, Histogram

RECONCILE_DURATION = Histogram(
    "fairlead_reconcile_duration_seconds",
    "Duration of one reconciler tick of one service, by what became of it.",
    ["outcome"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
WATCHES = Gauge("fairlead_watches", "Watches that stream now, of a Kubernetes cluster.", ["cluster"])
WAKES = Counter("fairlead_watch_wakes_total", "Hints to turn to a service, since its objects changed.", ["cluster"])
