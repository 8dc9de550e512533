"""Model configuration: a ModelConfig message as the frozen values that engine, scheduler and backends read.

Field names and their meaning are Triton's (model configuration; model_config.proto). Values are checked here, so
that no reader has to.
"""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.config.accelerators import Accelerator, accelerators
from serving_runtime.config.batching import BatchPolicy, batch_policy
from serving_runtime.config.ensembles import Ensemble, ensemble
from serving_runtime.config.instances import InstanceGroup, instance_groups, profiles_of
from serving_runtime.config.ragged import Ragged, ragged
from serving_runtime.config.sequences import SequencePolicy, sequence_policy
from serving_runtime.config.tensors import ModelTensor, WrittenTensor, model_tensors, written_tensors
from serving_runtime.config.warmup import WarmupSample, warmup_samples

FIRST_RESPONSE = "nv_inference_first_response_histogram_ms"

_LABEL = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = ("model", "version", "reason", "le", "quantile")


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Metrics of one model.

    Attributes:
        tags: labels of all its series.
        first_response_edges_ms: of the histogram of first responses.
        summaries: whether it keeps quantiles; the server's choice, not the config's.
    """

    tags: Mapping[str, str] = field(default_factory=dict)
    first_response_edges_ms: tuple[float, ...] = (100, 500, 2000, 5000)
    summaries: bool = False


def metrics_config(config: Any) -> MetricsConfig:
    """Return metric_tags and model_metrics of a ModelConfig message; raises ModelError for invalid ones."""
    edges = MetricsConfig().first_response_edges_ms
    for control in config.model_metrics.metric_control:
        edges = _edges(control, config.name)
    return MetricsConfig(_tags(config), edges)


def _tags(config: Any) -> dict[str, str]:
    tags = dict(config.metric_tags)
    for name in tags:
        if not _LABEL.fullmatch(name) or name in _TAKEN:
            raise ModelError(
                f"model '{config.name}': metric_tags: '{name}' cannot be a label; it must be letters, digits and _, "
                f"and none of {', '.join(_TAKEN)}"
            )
    return tags


def _edges(control: Any, model: str) -> tuple[float, ...]:
    where = f"model '{model}': model_metrics.metric_control"
    family = control.metric_identifier.family
    if family != FIRST_RESPONSE:
        raise ModelError(f"{where}: the buckets of '{family}' cannot be chosen; those of {FIRST_RESPONSE} can")
    edges = tuple(control.histogram_options.buckets)
    ascending = all(low < high for low, high in itertools.pairwise(edges))
    if not (edges and ascending and edges[0] > 0 and math.isfinite(edges[-1])):
        raise ModelError(f"{where}: buckets must be ascending numbers > 0, found {list(edges)}")
    return edges


ALLOW_CODE = (
    "allow it by --allow-python-models=true, under fairlead up by FAIRLEAD_ALLOW_PYTHON_MODELS=true, on Kubernetes by "
    "allowPythonModels in the cluster's file"
)
"""How to allow models whose files are code, part of a sentence."""


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Input of a backend that opens a model's file.

    Attributes:
        parameters: the config's own; a backend puts them over its --backend-config settings.
        graph_level: Triton's optimization.graph.level.
        op_libraries: with custom operators, to be registered before the file is opened.
        config: the whole ModelConfig message, with the model's name; a backend may fill in what it leaves open.
        auto_complete: whether it may.
        allow_python_models: whether the model's file may be code, or hold code.
        sandboxed_bytes: memory limit of the sandboxed process that a model in Python gets; None runs it without one.
        inputs, outputs: those of the config; empty where the file declares them.
        max_batch_size: as written; 0 if unset.
        gpu: the number of the one to run on; None for the CPU.
        instance_count: the maximum of concurrent runs on that device.
        gpu_accelerators, cpu_accelerators: of the model there, highest priority first.
        profiles: TensorRT's optimization profiles to use, by their numbers; empty for the first.
        memory_bytes: the most that a model may take; None where unknown.
    """

    parameters: Mapping[str, str]
    graph_level: int = 0
    op_libraries: tuple[Path, ...] = ()
    config: Any = None
    auto_complete: bool = True
    allow_python_models: bool = False
    sandboxed_bytes: int | None = None
    inputs: tuple[WrittenTensor, ...] = ()
    outputs: tuple[WrittenTensor, ...] = ()
    max_batch_size: int = 0
    instance_count: int = 1
    gpu: int | None = None
    gpu_accelerators: tuple[Accelerator, ...] = ()
    cpu_accelerators: tuple[Accelerator, ...] = ()
    profiles: tuple[str, ...] = ()
    memory_bytes: int | None = None

    @classmethod
    def from_message(cls, config: Any) -> "BackendOptions":
        own = {key: config.parameters[key].string_value for key in config.parameters}
        return cls(
            parameters=own,
            graph_level=config.optimization.graph.level,
            inputs=written_tensors(config.input),
            outputs=written_tensors(config.output),
            max_batch_size=config.max_batch_size,
            instance_count=sum(group.count or 1 for group in config.instance_group) or 1,
            gpu_accelerators=accelerators(config, "gpu"),
            cpu_accelerators=accelerators(config, "cpu"),
            profiles=profiles_of(config),
        )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The configuration of one model, completed and checked.

    Attributes:
        batching: None when every request runs alone.
        decoupled: the model sends any number of responses to a request.
        metrics: its labels and buckets.
        warmup: samples to run before the model is ready.
        sequences: None unless requests belong to sequences.
        cached: responses may come from the server's response cache, if enabled.
        ragged: how requests of different shapes are joined, None where they are not.
        ensemble: None for models that are no ensemble.
    """

    name: str
    platform: str
    max_batch_size: int
    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]
    batching: BatchPolicy | None
    instance_groups: tuple[InstanceGroup, ...]
    decoupled: bool = False
    warmup: tuple[WarmupSample, ...] = ()
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    sequences: SequencePolicy | None = None
    ensemble: Ensemble | None = None
    cached: bool = False
    ragged: Ragged | None = None

    @property
    def instance_count(self) -> int:
        """Return the maximum of concurrent runs."""
        return sum(group.count for group in self.instance_groups)

    @classmethod
    def from_message(cls, config: Any) -> "ModelConfig":
        """Return the values of a completed ModelConfig message; raises ModelError for invalid ones."""
        name = config.name
        if config.max_batch_size < 0:
            raise ModelError(f"model '{name}': max_batch_size must be >= 0, found {config.max_batch_size}")
        batched = config.max_batch_size > 0
        return cls(
            name=name,
            platform=config.platform or config.backend,  # as in Triton's metadata
            max_batch_size=config.max_batch_size,
            inputs=model_tensors(config.input, name, "input", batched=batched),
            outputs=model_tensors(config.output, name, "output", batched=batched),
            batching=batch_policy(config),
            instance_groups=instance_groups(config),
            decoupled=config.model_transaction_policy.decoupled,
            warmup=warmup_samples(config),
            metrics=metrics_config(config),
            sequences=sequence_policy(config),
            ensemble=ensemble(config),
            cached=_cached(config),
            ragged=ragged(config),
        )


def _cached(config: Any) -> bool:
    """Return whether responses may be cached; raises ModelError where equal inputs may have different responses."""
    if not config.response_cache.enable:
        return False
    kinds = {
        "a decoupled model": config.model_transaction_policy.decoupled,
        "a model of sequences": config.HasField("sequence_batching"),
        "an ensemble": config.HasField("ensemble_scheduling"),
    }
    for kind, found in kinds.items():
        if found:
            raise ModelError(f"model '{config.name}': response_cache of {kind} is not supported")
    if config.dynamic_batching.preserve_ordering:
        raise ModelError(f"model '{config.name}': response_cache does not go with preserve_ordering: it would overtake")
    return True
