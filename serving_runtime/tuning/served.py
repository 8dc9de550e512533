"""Search space of a model, from its served configuration; and the configuration fields of a setting. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.config import text
from serving_runtime.tuning.space import DELAYS_US, Setting, Space, doubling, rungs

_THREADS = "intra_op_thread_count"
_ONNX_RUNTIME = "onnxruntime"
_MOST_GPU_INSTANCES = 4


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the search.

    Attributes:
        cores: that this process may use.
        max_instances: None for as many as cores, of a model on a GPU for 4.
        largest_request_rows: of clients' requests; None for the model's max_batch_size.
    """

    limit_ms: float
    cores: int
    max_instances: int | None = None
    max_batch_size: int = 128
    max_concurrency: int = 256
    largest_request_rows: int | None = None


def check_tunable(config: Mapping[str, Any]) -> None:
    """Raise ModelError for a model that does not accept equal independent requests."""
    kinds = {
        "an ensemble; tune the models of its steps": "ensemble_scheduling" in config,
        "a model of sequences, whose requests depend on each other": "sequence_batching" in config,
        "decoupled; its requests are not joined": config.get("model_transaction_policy", {}).get("decoupled", False),
    }
    for kind, found in kinds.items():
        if found:
            raise ModelError(f"model '{config['name']}' cannot be tuned: it is {kind}")


def space_of(config: Mapping[str, Any], written: Any, bounds: Bounds) -> Space:
    """Return the search space.

    Requests as large as the model accepts today stay allowed: `max_batch_size` is not made smaller than the largest.

    Args:
        config: as the server completed it, in JSON.
        written: the ModelConfig message of the model's own config.pbtxt.
    """
    baseline = baseline_of(config)
    on_gpu = any(group.get("kind") == "KIND_GPU" for group in config.get("instance_group", ()))
    most_instances = bounds.max_instances or (_MOST_GPU_INSTANCES if on_gpu else bounds.cores)
    one_group = len(written.instance_group) <= 1
    threads = config.get("backend") == _ONNX_RUNTIME and not on_gpu
    return Space(
        baseline=baseline,
        instances=doubling(1, most_instances, baseline.instances) if one_group else (baseline.instances,),
        batch_sizes=_batch_sizes(config, written, bounds, baseline),
        queue_delays_us=tuple(
            sorted({0, baseline.queue_delay_us, *(us for us in DELAYS_US if us <= 500 * bounds.limit_ms)})
        ),
        intra_op_threads=doubling(1, bounds.cores, baseline.intra_op_threads)
        if threads
        else (baseline.intra_op_threads,),
        concurrencies=rungs(bounds.max_concurrency),
        cores=bounds.cores,
    )


def baseline_of(config: Mapping[str, Any]) -> Setting:
    """Return the model's current setting."""
    batching = config.get("dynamic_batching")
    groups = config.get("instance_group", ())
    return Setting(
        instances=sum(group.get("count", 1) or 1 for group in groups) or 1,
        batch_size=max(1, config.get("max_batch_size", 0)) if batching is not None else 1,
        queue_delay_us=int(batching.get("max_queue_delay_microseconds", 0)) if batching is not None else 0,
        intra_op_threads=int(config.get("parameters", {}).get(_THREADS, {}).get("string_value", "1")) or 1,
    )


def fields_of(setting: Setting, baseline: Setting, config: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """Return the fields of a ModelConfig, each whole, that apply the setting; empty for the baseline."""
    fields: dict[str, Any] = {}
    if setting.instances != baseline.instances:
        (group,) = written.instance_group or (None,)
        fields["instance_group"] = [{**_said(group), "count": setting.instances}]
    if (setting.batch_size, setting.queue_delay_us) != (baseline.batch_size, baseline.queue_delay_us):
        joined = setting.batch_size > 1
        fields["max_batch_size"] = setting.batch_size if joined else config["max_batch_size"]
        if joined:
            own = _said(written.dynamic_batching)
            own.pop("preferred_batch_size", None)  # it was for another size
            fields["dynamic_batching"] = {**own, "max_queue_delay_microseconds": setting.queue_delay_us}
    if setting.intra_op_threads != baseline.intra_op_threads:
        own = {key: {"string_value": written.parameters[key].string_value} for key in sorted(written.parameters)}
        fields["parameters"] = {**own, _THREADS: {"string_value": str(setting.intra_op_threads)}}
    return fields


def _batch_sizes(config: Mapping[str, Any], written: Any, bounds: Bounds, baseline: Setting) -> tuple[int, ...]:
    """Return the batch sizes; 1 only where the model's own config does not enable batching."""
    own = config.get("max_batch_size", 0)
    if own == 0:
        return (1,)
    least = max(2, min(own, bounds.largest_request_rows or own))
    alone = () if written.HasField("dynamic_batching") else (1,)
    return doubling(least, max(bounds.max_batch_size, least), baseline.batch_size, *alone)


def _said(message: Any) -> dict[str, Any]:
    """Return the set fields of a message."""
    if message is None:
        return {}
    return {key: value for key, value in text.as_json(message).items() if value not in (0, "", [], {}, False)}
