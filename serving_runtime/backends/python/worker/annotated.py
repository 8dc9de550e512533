"""Type annotations of models, the module `fairlead_python`: a model's signature is read from those of `predict`.

class Scores(NamedTuple):                      def predict(image: FP32[3, -1, -1]) -> Scores: ...
    label: BYTES[1]
    score: FP32[1]
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np

from serving_runtime.common.datatypes import DATATYPES, Datatype

ONLY_OUTPUT = "output"
"""Name of an output whose annotation gives none."""


class Refused(Exception):  # noqa: N818 - said to clients
    """Raised by a model for an invalid request: the client gets 400 and the message."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Annotation of an array: dims without the batch dimension, -1 is variable."""

    datatype: Datatype
    dims: tuple[int, ...]


class _Annotation:
    """A datatype; dims make an annotation of it: FP32[3, -1]."""

    def __init__(self, datatype: Datatype) -> None:
        self._datatype = datatype

    def __getitem__(self, dims: int | tuple[int, ...]) -> Any:
        given = dims if isinstance(dims, tuple) else (dims,)
        if not all(isinstance(dim, int) and (dim > 0 or dim == -1) for dim in given):
            raise TypeError(f"{self._datatype.name}{list(given)}: dims must be numbers >= 1, or -1 for any")
        return Annotated[np.ndarray, ArraySpec(self._datatype, given)]


BOOL, BYTES = _Annotation(DATATYPES["BOOL"]), _Annotation(DATATYPES["BYTES"])
INT8, INT16, INT32, INT64 = [_Annotation(DATATYPES[f"INT{bits}"]) for bits in (8, 16, 32, 64)]
UINT8, UINT16, UINT32, UINT64 = [_Annotation(DATATYPES[f"UINT{bits}"]) for bits in (8, 16, 32, 64)]
FP16, FP32, FP64 = [_Annotation(DATATYPES[f"FP{bits}"]) for bits in (16, 32, 64)]


@dataclass(frozen=True, slots=True)
class Described:
    """The signature in the annotations of a function.

    Attributes:
        optional: inputs that have a default.
    """

    inputs: dict[str, ArraySpec]
    optional: frozenset[str]
    outputs: dict[str, ArraySpec]


def described(first: Callable[..., Any], last: Callable[..., Any]) -> Described:
    """Return the inputs of `first` and the outputs of `last`; raises TypeError for a missing annotation."""
    hints = get_type_hints(first, include_extras=True)
    parameters = dict(inspect.signature(first).parameters)
    parameters.pop("self", None)  # of a class without an instance yet
    inputs = {name: _spec(hints.get(name), f"{first.__name__}() has parameter '{name}'") for name in parameters}
    optional = frozenset(name for name, given in parameters.items() if given.default is not inspect.Parameter.empty)
    returned = get_type_hints(last, include_extras=True).get("return")
    if isinstance(returned, type) and getattr(returned, "__annotations__", None):
        fields = get_type_hints(returned, include_extras=True)
        outputs = {name: _spec(hint, f"{returned.__name__} has '{name}'") for name, hint in fields.items()}
    else:
        outputs = {ONLY_OUTPUT: _spec(returned, f"{last.__name__}() has a return value")}
    return Described(inputs, optional, outputs)


def _spec(hint: Any, where: str) -> ArraySpec:
    found = next((given for given in get_args(hint) if isinstance(given, ArraySpec)), None)
    if found is None:
        for option in get_args(hint):  # FP32[3] | None
            found = found or next((given for given in get_args(option) if isinstance(given, ArraySpec)), None)
    if found is None:
        raise TypeError(f"{where} without an annotation such as FP32[3, -1]")
    return found
