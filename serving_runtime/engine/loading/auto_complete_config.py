"""Auto-generated model configuration (Triton), completed from and checked against the model's file.

Pure but for the message it fills in. The file decides what the config leaves open; else both must agree.
"""

from collections.abc import Container, Sequence
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.proto import DATA_TYPES


def complete(config: Any, signature: Signature, *, name: str, default_max_batch_size: int) -> None:
    """Fill in missing fields of the config.

    A model whose tensors all have a variable first dimension is batchable (see Signature): without a max_batch_size of
    its own it gets the default one and a dynamic batcher, unless its configured dims already name the first dimension.
    """
    config.name = config.name or name
    if not config.HasField("version_policy"):
        config.version_policy.latest.num_versions = 1
    if not config.max_batch_size and signature.batchable and not _names_batch_dim(config, signature):
        config.max_batch_size = default_max_batch_size
        joins = default_max_batch_size > 1 and not config.model_transaction_policy.decoupled
        if joins and config.WhichOneof("scheduling_choice") is None:
            config.dynamic_batching.SetInParent()
    batched = config.max_batch_size > 0
    _complete_tensors(config.input, signature.inputs, batched=batched)
    _complete_tensors(config.output, signature.outputs, batched=batched)
    if not config.instance_group:
        group = config.instance_group.add(name=config.name, count=1)
        group.kind = type(group).Kind.Value("KIND_CPU")


def check_complete(config: Any, *, name: str) -> None:
    """Raise ModelError for fields that a config must contain when nothing is completed for it."""
    for field in ("input", "output"):
        if not getattr(config, field):
            raise ModelError(f"model '{name}': config.pbtxt must list every {field} when auto-completion is off")
    if not (config.platform or config.backend):
        raise ModelError(f"model '{name}': config.pbtxt must name its backend when auto-completion is off")


def check_agrees(config: Any, signature: Signature) -> None:
    """Raise ModelError unless the completed config's tensors are those of the file."""
    batched = config.max_batch_size > 0
    flat = {tensor.name for tensor in config.input if tensor.allow_ragged_batch}
    _check_tensors(config, config.input, signature.inputs, "input", flat, batched=batched)
    flat = {target for given in config.batch_output for target in given.target_name}
    _check_tensors(config, config.output, signature.outputs, "output", flat, batched=batched)
    required = {spec.name for spec in signature.inputs if not spec.optional}
    for tensor in config.input:
        if tensor.optional and tensor.name in required:
            where = f"model '{config.name}': input '{tensor.name}'"
            raise ModelError(
                f"{where} is optional in config.pbtxt, but the model's file has no value of its own for it"
            )
    missing = required - {tensor.name for tensor in config.input}
    if missing:
        raise ModelError(f"model '{config.name}': config.pbtxt leaves out input '{min(missing)}' of the model's file")


def check_batch_inputs(config: Any, signature: Signature) -> None:
    """Raise ModelError unless a batch_input's targets are inputs of the model's file, of its type."""
    by_name = {spec.name: spec for spec in signature.inputs}
    for given in config.batch_input:
        data_type = DATA_TYPES.values_by_number[given.data_type].name
        for target in given.target_name:
            spec = by_name.get(target)
            if spec is None or spec.datatype.config_name != data_type:
                found = spec.datatype.config_name if spec is not None else f"not among its inputs, {', '.join(by_name)}"
                raise ModelError(
                    f"model '{config.name}': batch_input '{target}' is {data_type}, but {found} in the model's file"
                )


def _names_batch_dim(config: Any, signature: Signature) -> bool:
    """Return whether a configured tensor has as many dims as the file's: its author counts no batch dimension."""
    ranks = {spec.name: len(spec.shape) for spec in (*signature.inputs, *signature.outputs)}
    return any(tensor.dims and len(tensor.dims) == ranks.get(tensor.name) for tensor in (*config.input, *config.output))


def _complete_tensors(tensors: Any, specs: Sequence[TensorSpec], *, batched: bool) -> None:
    configured = {tensor.name: tensor for tensor in tensors}
    add_all = not configured
    for spec in specs:
        tensor = configured.get(spec.name)
        if tensor is None:
            if not add_all or spec.optional:
                continue
            tensor = tensors.add(name=spec.name)
        if not tensor.data_type:
            tensor.data_type = DATA_TYPES.values_by_name[spec.datatype.config_name].number
        if not tensor.dims:
            dims = spec.shape[1:] if batched else spec.shape
            if dims:
                tensor.dims.extend(dims)
            elif not tensor.HasField("reshape"):
                if batched:  # one value per row: clients see [batch, 1]
                    tensor.dims.append(1)
                tensor.reshape.SetInParent()  # without any dims: a scalar


def _check_tensors(
    config: Any, tensors: Any, specs: Sequence[TensorSpec], kind: str, flat: Container[str], *, batched: bool
) -> None:
    by_name = {spec.name: spec for spec in specs}
    for tensor in tensors:
        where = f"model '{config.name}': {kind} '{tensor.name}'"
        spec = by_name.get(tensor.name)
        if spec is None:
            known = ", ".join(f"'{name}'" for name in by_name)
            raise ModelError(f"{where} is not in the model's file; its {kind}s are {known}")
        data_type = DATA_TYPES.values_by_number[tensor.data_type].name
        if data_type != spec.datatype.config_name:
            raise ModelError(f"{where} is {data_type} in config.pbtxt, but {spec.datatype.config_name} in its file")
        dims = tuple(tensor.reshape.shape) if tensor.HasField("reshape") else tuple(tensor.dims)
        shape = (-1, *dims) if batched else dims
        if tensor.name in flat:
            shape = (-1,)
        if not _fits(shape, spec.shape):
            hint = (
                "; max_batch_size > 0 needs a variable first dimension" if batched and spec.shape[:1] != (-1,) else ""
            )
            raise ModelError(
                f"{where} has shape {list(shape)} in config.pbtxt, but {list(spec.shape)} in its file{hint}"
            )


def _fits(shape: tuple[int, ...], file_shape: tuple[int, ...]) -> bool:
    """Return whether the file's shape accepts every shape that the configured one does."""
    return (
        len(shape) == len(file_shape)
        and all(inner in (dim, -1) or dim == -1 for dim, inner in zip(shape, file_shape, strict=True))
        and all(inner == -1 or dim != -1 for dim, inner in zip(shape, file_shape, strict=True))
    )
