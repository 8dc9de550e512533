"""Model signature: its inputs and outputs, as declared by its file."""

from dataclasses import dataclass

from serving_runtime.common.datatypes import Datatype


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of a model.

    Attributes:
        shape: every dimension of the file's tensor, the batch dimension included; -1 is variable.
        optional: an input with a default in the file, which a request may replace.
    """

    name: str
    datatype: Datatype
    shape: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model, in the file's order; a missing optional input is `ABSENT`."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def batchable(self) -> bool:
        """Return whether every tensor has a variable first dimension, which then is the batch dimension.

        It is not where all inputs have one dimension only: that may be the words of a text.
        """
        inputs = [spec for spec in self.inputs if not spec.optional]
        tensors = [*inputs, *self.outputs]
        leads = bool(tensors) and all(tensor.shape and tensor.shape[0] == -1 for tensor in tensors)
        return leads and (not inputs or any(len(spec.shape) > 1 for spec in inputs))
