"""Signature from config.pbtxt, for models without a file format of their own."""

from collections.abc import Iterable
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import ModelTensor, model_tensors


def signature_of(config: Any) -> Signature:
    """Return the signature in a ModelConfig message; raises ModelError where it leaves tensors out."""
    for field in ("input", "output"):
        if not getattr(config, field):
            raise ModelError(f"neither config.pbtxt nor auto_complete_config names an {field} of the model")
    batched = config.max_batch_size > 0
    return Signature(
        inputs=_specs(model_tensors(config.input, config.name, "input", batched=batched), batched=batched),
        outputs=_specs(model_tensors(config.output, config.name, "output", batched=batched), batched=batched),
    )


def _specs(tensors: Iterable[ModelTensor], *, batched: bool) -> tuple[TensorSpec, ...]:
    batch = (-1,) if batched else ()
    return tuple(
        TensorSpec(
            tensor.name,
            tensor.datatype,
            (*batch, *(tensor.dims if tensor.reshape is None else tensor.reshape)),
            tensor.optional,
        )
        for tensor in tensors
    )
