"""Bit operations for numba-compiled functions, which Python cannot express.

Each takes an array of bytes and an offset that the caller has checked.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_BIT, _BYTE, _WORD = ir.IntType(1), ir.IntType(8), ir.IntType(64)
_BYTES = ir.VectorType(_BYTE, 64)
_INDICES = ir.VectorType(ir.IntType(32), 64)


@intrinsic  # type: ignore[untyped-decorator]
def word(_: Any, text: Any, at: Any) -> Any:
    """Return the eight bytes from there on as a number, the first one lowest (little-endian)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _loaded(context, builder, signature, arguments, _WORD)

    return types.uint64(text, at), generate


@intrinsic  # type: ignore[untyped-decorator]
def places(_: Any, text: Any, at: Any, byte: Any) -> Any:  # noqa: ARG001 - the types of arguments
    """Return which of the 64 bytes from there on equal this one, as a mask with the first as the lowest bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = _loaded(context, builder, signature, arguments[:2], _BYTES)
        first = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(ir.Constant(_BYTES, ir.Undefined), arguments[2], first)
        same = builder.icmp_unsigned("==", found, builder.shuffle_vector(one, one, ir.Constant(_INDICES, [0] * 64)))
        return builder.bitcast(same, _WORD)

    return types.uint64(text, at, types.uint8), generate


@intrinsic  # type: ignore[untyped-decorator]
def lowest(_: Any, bits: Any) -> Any:  # noqa: ARG001 - the type of the argument
    """Return the index of the lowest set bit; one must be set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001 - as numba calls it
        return builder.cttz(arguments[0], ir.Constant(_BIT, 1))

    return types.uint64(types.uint64), generate


def _loaded(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = builder.gep(builder.bitcast(array.data, _BYTE.as_pointer()), [arguments[1]])
    found = builder.load(builder.bitcast(place, kind.as_pointer()))
    found.align = 1
    return found
