"""Reports of a tuning, as the runtime writes them."""

from typing import Any

from tests.deployments._support.tuning_points import BEST, FAST, NOW

CONFIG = {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 100}}


REPORT: dict[str, Any] = {
    "max_latency_p99_ms": 10.0,
    "measurements": 12,
    "chosen": {**BEST, "config": CONFIG},
    "baseline": NOW,
    "frontier": [FAST, BEST],
    "points": [FAST, BEST, NOW],
    "failed": [{"instances": 9, "batch_size": 1, "reason": "out of memory"}],
    "conclusion": "Chosen: 900 requests a second with a p99 of 4.00 ms, 3.00 times what it does as it is.",
}
