"""Points of a tuning, as a search measures them."""

from typing import Any


def point(p99_ms: float, per_s: float, **more: int) -> dict[str, Any]:
    setting = {"instances": 1, "batch_size": 1, "queue_delay_us": 0, "intra_op_threads": 1, "concurrency": 4, **more}
    return {**setting, "p99_ms": p99_ms, "p50_ms": p99_ms / 2, "requests_per_s": per_s}


FAST, BEST, NOW = point(1, 100), point(4, 900, batch_size=8), point(9, 300, instances=2)
