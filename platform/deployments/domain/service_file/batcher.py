"""Batcher of a service file (KServe's `spec.predictor.batcher`), mapped to the runtime's dynamic batcher. Pure."""

from collections.abc import Mapping

from common.files.document import Document

_MAX_BATCH_SIZE = 32  # KServe's default
_MOST_ROWS = 1_000_000
_LONGEST_MS = 3_600_000
_LONGEST_S = 3600
# Fields of a ModelConfig that configure batching.
_SAID_BY_BATCHER = ("max_batch_size", "dynamic_batching", "sequence_batching", "ensemble_scheduling")


def with_batcher(predictor: Document, config: Mapping[str, object]) -> dict[str, object]:
    """Return `config`, fields of a ModelConfig, with those of the predictor's batcher; they exclude each other."""
    batcher = predictor.optional("batcher")
    if batcher is None:
        return dict(config)
    if both := [name for name in _SAID_BY_BATCHER if name in config]:
        predictor.fault(
            "batcher",
            f"and spec.predictor.model.config.{both[0]} both say how requests are put together; leave out one of them",
        )
    rows = batcher.integer("maxBatchSize", minimum=1, maximum=_MOST_ROWS, default=_MAX_BATCH_SIZE)
    delay_ms = batcher.integer("maxLatency", minimum=0, maximum=_LONGEST_MS, default=0)
    timeout_s = batcher.integer("timeout", minimum=0, maximum=_LONGEST_S, default=0)
    batcher.refuse_unknown()
    batching: dict[str, object] = {"max_queue_delay_microseconds": delay_ms * 1000} if delay_ms else {}
    if timeout_s:
        microseconds = timeout_s * 1_000_000
        batching["default_queue_policy"] = {"timeout_action": "REJECT", "default_timeout_microseconds": microseconds}
    return {**config, "max_batch_size": rows, "dynamic_batching": batching}
