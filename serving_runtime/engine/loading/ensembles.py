"""Ensemble loading: opened without a backend, and checked against the models of the steps."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config.ensembles import Step
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.support import ENSEMBLE_PLATFORM
from serving_runtime.config.tensors import VARIABLE, ModelTensor

LookUp: TypeAlias = Callable[[str, str], ModelConfig | None]
"""Returns the config of a loaded model version (the default one for no version), else None."""


class EnsembleModel:
    """Placeholder for a backend's model: a signature without a model."""

    opsets: dict[str, int] = {}

    def __init__(self, config: ModelConfig) -> None:
        batch = (VARIABLE,) if config.max_batch_size else ()
        self.signature = Signature(
            inputs=tuple(TensorSpec(tensor.name, tensor.datatype, batch + tensor.dims) for tensor in config.inputs),
            outputs=tuple(TensorSpec(tensor.name, tensor.datatype, batch + tensor.dims) for tensor in config.outputs),
        )

    def close(self) -> None: ...


def parts(written: Any) -> tuple[str, ...]:
    """Return the models of a ModelConfig message's steps; none for a model that is no ensemble."""
    return tuple(dict.fromkeys(step.model_name for step in written.ensemble_scheduling.step))


def completed(written: Any, name: str) -> Any:
    """Return an ensemble's ModelConfig message with its optional fields filled in."""
    message = proto.ModelConfig()
    message.CopyFrom(written)
    message.name = name
    message.platform = message.platform or ENSEMBLE_PLATFORM
    if not message.HasField("version_policy"):
        message.version_policy.latest.num_versions = 1
    for field in ("input", "output"):
        if not getattr(message, field):
            raise ModelError(f"model '{name}': ensemble_scheduling needs every {field} listed in config.pbtxt")
    return message


def check(config: ModelConfig, look_up: LookUp) -> None:
    """Raise ModelError unless the models of all steps are loaded and connected tensors fit.

    Shapes are compared as requests have them, batch dimension included: a model without one may be a step of an
    ensemble with one, where its dims say so (Triton: ensemble models).
    """
    assert config.ensemble is not None  # noqa: S101 - asked for ensembles
    tensors = {tensor.name: _Seen(_full(tensor, config), "the ensemble") for tensor in config.inputs}
    for step in config.ensemble.steps:
        where = f"ensemble '{config.name}': step of model '{step.model}'"
        part = look_up(step.model, step.version)
        if part is None:
            version = f" version {step.version}" if step.version else ""
            raise ModelError(f"ensemble '{config.name}' contains model '{step.model}'{version}, which is not loaded")
        if part.decoupled:
            raise ModelError(f"{where}: decoupled models are not supported in ensembles")
        if 0 < part.max_batch_size < config.max_batch_size:
            raise ModelError(
                f"ensemble '{config.name}' allows maximum batch size {config.max_batch_size}, but it contains model "
                f"'{step.model}', which only allows maximum batch size {part.max_batch_size}"
            )
        _check_mapped(step, part, where)
        inputs = {tensor.name: tensor for tensor in part.inputs}
        for name, tensor in step.inputs.items():
            tensors[tensor].check(_full(inputs[name], part), f"{where}: input '{name}'", tensor)
        outputs = {tensor.name: tensor for tensor in part.outputs}
        for name, tensor in step.outputs.items():
            tensors[tensor] = _Seen(_full(outputs[name], part), f"output '{name}' of model '{step.model}'")
    for output in config.outputs:
        tensors[output.name].check(
            _full(output, config), f"ensemble '{config.name}': output '{output.name}'", output.name
        )


class _Seen:
    """A tensor of the ensemble, as its producer declares it."""

    def __init__(self, spec: TensorSpec, maker: str) -> None:
        self._spec = spec
        self._maker = maker

    def check(self, taken: TensorSpec, where: str, name: str) -> None:
        made = self._spec
        fits = len(made.shape) == len(taken.shape) and all(
            one == other or VARIABLE in (one, other) for one, other in zip(made.shape, taken.shape, strict=True)
        )
        if made.datatype is not taken.datatype or not fits:
            raise ModelError(
                f"{where} is {taken.datatype.name} {list(taken.shape)}, but tensor '{name}' is {made.datatype.name} "
                f"{list(made.shape)} as {self._maker} says"
            )


def _full(tensor: ModelTensor, config: ModelConfig) -> TensorSpec:
    batch = (VARIABLE,) if config.max_batch_size else ()
    return TensorSpec(tensor.name, tensor.datatype, batch + tensor.dims)


def _check_mapped(step: Step, part: ModelConfig, where: str) -> None:
    """Raise ModelError unless the step's maps name the model's tensors, and all inputs that it needs."""
    _check_names(step.inputs, [tensor.name for tensor in part.inputs], f"{where}: input_map")
    _check_names(step.outputs, [tensor.name for tensor in part.outputs], f"{where}: output_map")
    for tensor in part.inputs:
        if not tensor.optional and tensor.name not in step.inputs:
            raise ModelError(f"{where}: input_map leaves out input '{tensor.name}'")


def _check_names(given: Iterable[str], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise ModelError(f"{where} names '{name}', but the model has {', '.join(known)}")
