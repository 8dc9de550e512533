"""Supported fields of ModelConfig. Any other field that a file sets refuses the load by its dotted name."""

from collections.abc import Iterator
from typing import Any

from serving_runtime.common.errors import ModelError

PLATFORMS = {
    "onnxruntime_onnx": "onnxruntime",
    "python": "python",
    "pytorch_libtorch": "pytorch",
    "tensorrt_plan": "tensorrt",
    "tensorflow_savedmodel": "openvino",
    "tensorflow_graphdef": "openvino",
}
ENSEMBLE_PLATFORM = "ensemble"

_QUEUE_POLICY = ("timeout_action", "default_timeout_microseconds", "allow_timeout_override", "max_queue_size")
_SCHEDULING = ("preferred_batch_size", "max_queue_delay_microseconds", "preserve_ordering", "priority_levels")

# By parent. A message that is listed but is no parent here is accepted only where all its fields are unset.
_FIELDS: dict[str, tuple[str, ...]] = {
    "": (
        "name",
        "platform",
        "backend",
        "max_batch_size",
        "default_model_filename",
        "version_policy",
        "input",
        "output",
        "batch_input",
        "batch_output",
        "instance_group",
        "dynamic_batching",
        "sequence_batching",
        "ensemble_scheduling",
        "optimization",
        "parameters",
        "model_transaction_policy",
        "metric_tags",
        "cc_model_filenames",
        "model_operations",
        "model_repository_agents",
        "model_metrics",
        "model_warmup",
        "response_cache",
    ),
    "version_policy.": ("latest", "all", "specific"),
    "version_policy.latest.": ("num_versions",),
    "version_policy.specific.": ("versions",),
    "input.": ("name", "data_type", "format", "dims", "reshape", "optional", "allow_ragged_batch"),
    "input.reshape.": ("shape",),
    "output.": ("name", "data_type", "dims", "reshape", "label_filename"),
    "output.reshape.": ("shape",),
    "batch_input.": ("kind", "target_name", "data_type", "source_input"),
    "batch_output.": ("kind", "target_name", "source_input"),
    "instance_group.": ("name", "kind", "count", "gpus", "profile", "rate_limiter"),
    "instance_group.rate_limiter.": ("resources", "priority"),
    "instance_group.rate_limiter.resources.": ("name", "count", "global"),
    "dynamic_batching.": (*_SCHEDULING, "default_priority_level", "default_queue_policy", "priority_queue_policy"),
    "dynamic_batching.default_queue_policy.": _QUEUE_POLICY,
    "dynamic_batching.priority_queue_policy.": _QUEUE_POLICY,
    "sequence_batching.": (
        "direct",
        "oldest",
        "max_sequence_idle_microseconds",
        "control_input",
        "state",
    ),
    "sequence_batching.direct.": ("max_queue_delay_microseconds", "minimum_slot_utilization"),
    "sequence_batching.oldest.": ("max_candidate_sequences", *_SCHEDULING[:3]),
    "sequence_batching.control_input.": ("name", "control"),
    "sequence_batching.control_input.control.": (
        "kind",
        "int32_false_true",
        "fp32_false_true",
        "bool_false_true",
        "data_type",
    ),
    "sequence_batching.state.": (
        "input_name",
        "output_name",
        "data_type",
        "dims",
        "initial_state",
        "use_same_buffer_for_input_output",
    ),
    "sequence_batching.state.initial_state.": ("name", "data_type", "dims", "zero_data", "data_file"),
    "ensemble_scheduling.": ("step", "max_inflight_requests"),
    "ensemble_scheduling.step.": ("model_name", "model_version", "input_map", "output_map"),
    "optimization.": ("graph", "execution_accelerators"),
    "optimization.graph.": ("level",),
    "optimization.execution_accelerators.": ("gpu_execution_accelerator", "cpu_execution_accelerator"),
    "optimization.execution_accelerators.gpu_execution_accelerator.": ("name", "parameters"),
    "optimization.execution_accelerators.cpu_execution_accelerator.": ("name", "parameters"),
    "model_transaction_policy.": ("decoupled",),
    "model_warmup.": ("name", "batch_size", "inputs", "count"),
    "model_warmup.inputs.": ("data_type", "dims", "zero_data", "random_data", "input_data_file"),
    "model_operations.": ("op_library_filename",),
    "model_repository_agents.": ("agents",),
    "model_repository_agents.agents.": ("name", "parameters"),
    "model_metrics.": ("metric_control",),
    "model_metrics.metric_control.": ("metric_identifier", "histogram_options"),
    "model_metrics.metric_control.metric_identifier.": ("family",),
    "model_metrics.metric_control.histogram_options.": ("buckets",),
    "parameters.": ("string_value",),
    "response_cache.": ("enable",),
}
HONOURED = frozenset(parent + field for parent, fields in _FIELDS.items() for field in fields)


def refuse_unsupported(config: Any, model: str) -> None:
    """Raise ModelError, naming each, when the config sets fields that would not be honoured."""
    faults = [f"config.pbtxt sets '{name}', which this runtime does not support" for name in unsupported_fields(config)]
    if config.platform and config.platform not in (*PLATFORMS, ENSEMBLE_PLATFORM):
        known = ", ".join((*PLATFORMS, ENSEMBLE_PLATFORM))
        faults.append(f"platform '{config.platform}' is not supported; supported are {known}")
    if faults:
        raise ModelError(f"model '{model}': {'; '.join(faults)}")


def unsupported_fields(config: Any) -> tuple[str, ...]:
    """Return the dotted names of the set fields that would not be honoured, each once."""
    return tuple(dict.fromkeys(name for name in _set_fields(config, "") if name not in HONOURED))


def _set_fields(message: Any, prefix: str) -> Iterator[str]:
    """Yield the dotted name of every field that is set, parents before children."""
    for field, value in message.ListFields():
        name = prefix + field.name
        yield name
        if field.message_type is None or name not in HONOURED:
            continue
        if field.message_type.GetOptions().map_entry:
            children = [value[key] for key in value] if field.message_type.fields[1].message_type is not None else []
        else:
            children = list(value) if field.is_repeated else [value]
        for child in children:
            yield from _set_fields(child, name + ".")
