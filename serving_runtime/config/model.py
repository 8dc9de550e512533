"""A ModelConfig message as the frozen values that the engine, the scheduler and the backends read.

Field names and their meaning are Triton's (model configuration; model_config.proto). Values are checked here, so
that no reader has to.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serving_runtime.datatypes import FROM_CONFIG_NAME, Datatype, element_count
from serving_runtime.errors import ModelError
from serving_runtime.proto import DATA_TYPES


class TimeoutAction(enum.Enum):
    """What becomes of a request whose time in the queue is over."""

    REJECT = "REJECT"
    DELAY = "DELAY"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Limits of one priority level's queue; 0 means no limit.

    Attributes:
        allow_timeout_override: whether a request's own `timeout` may shorten the default.
    """

    timeout_action: TimeoutAction = TimeoutAction.REJECT
    default_timeout_us: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0

    def timeout_us(self, requested_us: int) -> int:
        """Return the queue timeout of a request that asks for `requested_us` (0: asks for none); 0 is no timeout."""
        if not (self.allow_timeout_override and requested_us):
            return self.default_timeout_us
        return min(requested_us, self.default_timeout_us) if self.default_timeout_us else requested_us


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How requests are joined.

    Attributes:
        priority_levels: 0 for one queue; else levels 1 (served first) to this.
        queues: the queue policy per level, for level 0 where there are no levels.
    """

    max_batch_size: int
    preferred_batch_sizes: frozenset[int]
    max_queue_delay_us: int
    priority_levels: int
    default_priority_level: int
    queues: Mapping[int, QueuePolicy]


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What a backend needs before it opens a model's file.

    Attributes:
        parameters: the config's own; a backend puts them over its --backend-config settings.
        graph_level: Triton's optimization.graph.level.
    """

    parameters: Mapping[str, str]
    graph_level: int = 0

    @classmethod
    def from_message(cls, config: Any) -> "BackendOptions":
        own = {key: config.parameters[key].string_value for key in config.parameters}
        return cls(parameters=own, graph_level=config.optimization.graph.level)


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or output as clients see it, batch dimension left out of `dims`; -1 is variable.

    Attributes:
        reshape: what the model's file has in place of `dims`; None where they are the same.
    """

    name: str
    datatype: Datatype
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The configuration of one model, completed and checked.

    Attributes:
        batching: None when every request runs alone.
    """

    name: str
    platform: str
    max_batch_size: int
    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]
    batching: BatchPolicy | None
    instance_count: int

    @classmethod
    def from_message(cls, config: Any) -> "ModelConfig":
        """Return the values of a completed ModelConfig message; raises ModelError where they make no sense."""
        name = config.name
        if config.max_batch_size < 0:
            raise ModelError(f"model '{name}': max_batch_size must be >= 0, found {config.max_batch_size}")
        batched = config.max_batch_size > 0
        return cls(
            name=name,
            platform=config.platform,
            max_batch_size=config.max_batch_size,
            inputs=_tensors(config.input, name, "input", batched=batched),
            outputs=_tensors(config.output, name, "output", batched=batched),
            batching=_batch_policy(config),
            instance_count=_instance_count(config),
        )


def _tensors(messages: Any, model: str, kind: str, *, batched: bool) -> tuple[ModelTensor, ...]:
    tensors: dict[str, ModelTensor] = {}
    for message in messages:
        if not message.name:
            raise ModelError(f"model '{model}': config.pbtxt has an {kind} without a name")
        if message.name in tensors:
            raise ModelError(f"model '{model}': {kind} '{message.name}' is configured twice")
        tensors[message.name] = _tensor(message, f"model '{model}': {kind} '{message.name}'", batched=batched)
    return tuple(tensors.values())


def _tensor(message: Any, where: str, *, batched: bool) -> ModelTensor:
    datatype = FROM_CONFIG_NAME.get(DATA_TYPES.values_by_number[message.data_type].name)
    if datatype is None:
        raise ModelError(f"{where} must have a data_type")
    dims = tuple(message.dims)
    if not dims:
        raise ModelError(f"{where}: dims must not be empty; use dims [1] and an empty reshape for one value per row")
    if any(dim < 1 and dim != -1 for dim in dims):
        raise ModelError(f"{where}: dims must be >= 1, or -1 for a variable dimension, found {list(dims)}")
    reshape = tuple(message.reshape.shape) if message.HasField("reshape") else None
    if reshape is not None:
        _check_reshape(dims, reshape, where, batched=batched)
    return ModelTensor(message.name, datatype, dims, reshape)


def _check_reshape(dims: tuple[int, ...], reshape: tuple[int, ...], where: str, *, batched: bool) -> None:
    if -1 in dims or -1 in reshape:
        raise ModelError(f"{where}: reshape with variable dimensions is not supported")
    if not reshape and not batched:
        raise ModelError(f"{where}: reshape to an empty shape needs max_batch_size > 0")
    if element_count(dims) != element_count(reshape) or any(dim < 1 for dim in reshape):
        raise ModelError(f"{where}: reshape {list(reshape)} must hold as many elements as dims {list(dims)}")


def _instance_count(config: Any) -> int:
    total = 0
    for group in config.instance_group:
        kind = type(group).DESCRIPTOR.enum_types_by_name["Kind"].values_by_number[group.kind].name
        if kind not in ("KIND_AUTO", "KIND_CPU"):
            raise ModelError(f"model '{config.name}': instance_group kind {kind} is not supported; use KIND_CPU")
        if group.count < 0:
            raise ModelError(f"model '{config.name}': instance_group count must be >= 0, found {group.count}")
        total += group.count or 1
    return total or 1


def _batch_policy(config: Any) -> BatchPolicy | None:
    if not config.HasField("dynamic_batching"):
        return None
    batching, limit = config.dynamic_batching, config.max_batch_size
    where = f"model '{config.name}': dynamic_batching"
    if limit == 0:
        raise ModelError(f"{where} needs max_batch_size > 0")
    if any(not 1 <= size <= limit for size in batching.preferred_batch_size):
        raise ModelError(
            f"{where}: preferred_batch_size must be in [1, {limit}], found {list(batching.preferred_batch_size)}"
        )
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels and not 1 <= default <= levels:
        raise ModelError(f"{where}: default_priority_level must be in [1, {levels}], found {default}")
    if levels > 1000:
        raise ModelError(f"{where}: priority_levels must be at most 1000, found {levels}")
    strays = [level for level in batching.priority_queue_policy if not 1 <= level <= levels]
    if strays:
        raise ModelError(f"{where}: priority_queue_policy names level {strays[0]}, but priority_levels is {levels}")
    if batching.preserve_ordering and _instance_count(config) > 1:
        raise ModelError(f"{where}: preserve_ordering with several instances is not supported")
    common = _queue_policy(batching.default_queue_policy)
    queues = dict.fromkeys(range(1, levels + 1) if levels else (0,), common)
    for level in batching.priority_queue_policy:
        queues[level] = _queue_policy(batching.priority_queue_policy[level])
    return BatchPolicy(
        max_batch_size=limit,
        preferred_batch_sizes=frozenset(batching.preferred_batch_size),
        max_queue_delay_us=batching.max_queue_delay_microseconds,
        priority_levels=levels,
        default_priority_level=default if levels else 0,
        queues=queues,
    )


def _queue_policy(message: Any) -> QueuePolicy:
    return QueuePolicy(
        timeout_action=TimeoutAction.DELAY if message.timeout_action else TimeoutAction.REJECT,
        default_timeout_us=message.default_timeout_microseconds,
        allow_timeout_override=message.allow_timeout_override,
        max_queue_size=message.max_queue_size,
    )
