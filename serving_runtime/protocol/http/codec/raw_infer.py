"""Raw binary request: one tensor's bytes and no JSON (Triton: binary tensor data extension, raw binary request).

The model defines the tensor: it must have one input, of which at most one dimension is variable; the batch
dimension is 1. A BYTES input must be of shape [1]: the body is its one element, without a length before it.
"""

from serving_runtime.common.datatypes import BYTES, Array
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import Tensor
from serving_runtime.config.model import ModelConfig
from serving_runtime.protocol.http.codec.infer_head import OutputForms
from serving_runtime.protocol.http.codec.response_head import AnswerForm
from serving_runtime.protocol.tensors import binary

ANSWER = AnswerForm(OutputForms(binary=True))
"""Form of the answers to such a request, which has no head: all outputs in binary."""


def tensor(body: memoryview, config: ModelConfig) -> Tensor:
    """Return the input in a raw body; raises InvalidArgument where model or body leave its shape open."""
    where = f"a request of raw bytes to model '{config.name}'"
    if len(config.inputs) != 1:
        raise InvalidArgument(
            f"{where} is not possible: it has {len(config.inputs)} inputs; send JSON before the bytes"
        )
    (wanted,) = config.inputs
    batch = (1,) if config.max_batch_size else ()
    if wanted.datatype is BYTES:
        if wanted.dims not in ((1,), (-1,)):
            raise InvalidArgument(f"{where} is not possible: its BYTES input has shape {list(wanted.dims)}, not [1]")
        array: Array = binary.bytes_array([bytes(body)]).reshape((*batch, 1))
        return Tensor(wanted.name, BYTES, array)
    variable = wanted.dims.count(-1)
    if variable > 1:
        raise InvalidArgument(f"{where} is not possible: its input has {variable} variable dimensions")
    fixed = wanted.datatype.size_bytes
    for dim in wanted.dims:
        fixed *= dim if dim != -1 else 1
    if variable and len(body) % fixed:
        raise InvalidArgument(f"{where} has {len(body)} bytes, which is no multiple of {fixed}")
    dims = tuple(len(body) // fixed if dim == -1 else dim for dim in wanted.dims)
    return Tensor(wanted.name, wanted.datatype, binary.decode(body, wanted.datatype, (*batch, *dims), wanted.name))
