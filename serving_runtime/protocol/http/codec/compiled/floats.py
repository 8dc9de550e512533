"""Float parsing: FP32 numbers from JSON text, by code that numba compiles for this processor on import.

Ends of numbers and their points are found 64 bytes at a time, and up to eight digits are read at once, so that hardly a
branch depends on the text. The sum of digits follows D. Lemire, "Number Parsing at a Gigabyte per Second" (2021).
Results equal those of reading FP64 and rounding it to FP32: an integer below 2**53 over a power of ten up to 10**22 is
exact in FP64 (W. D. Clinger, 1990); a longer one has a known error. Where that could change the rounded result, and for
invalid text, nothing is returned.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from serving_runtime.protocol.http.codec.compiled.bits import lowest, places, word

_U = np.uint64
_0, _1, _3, _8, _16, _19, _24, _64 = map(_U, (0, 1, 3, 8, 16, 19, 24, 64))
_COMMA, _POINT = np.uint8(ord(",")), np.uint8(ord("."))
_SPACE, _MINUS, _PLUS, _NIL, _NINE = map(ord, " -+09")
_ZEROS = _U(0x3030303030303030)
_KEEP = np.array([0, *((1 << 64) - (1 << 8 * (8 - count)) for count in range(1, 9))], _U)
"""Masks that keep the last so many bytes of a word."""

_EXACT = _U(2**53)
"""Every integer below it is exact in FP64."""

_INTEGERS = np.array([10**power for power in range(20)], _U)
_FURTHEST = 60
_POWERS = np.array([float(f"1e{power}") for power in range(_FURTHEST + 1)])
_SIGNS = np.array([1.0, -1.0])
"""Signs of numbers without and with a minus, in place of an unpredictable branch."""

_LESS, _MORE = 1 - 2.0**-50, 1 + 2.0**-50
"""Factors beyond the errors of one conversion, one power and one division or product, of 2**-53 each."""

_BEFORE_BYTES, _LEAST_BYTES = 24, 64
"""Minimum of bytes before the numbers, and of the numbers: up to three words that end with a number are read, and
blocks of 64 bytes."""

_TEXT = types.Array(types.uint8, 1, "C", readonly=True)
_SIGNATURE = types.int64(_TEXT, types.uint64, types.uint64, types.float32[::1])
_inline = numba.njit(error_model="numpy", forceinline=True)  # division as processors do it


def read(text: bytes, start: int, end: int, count: int) -> NDArray[np.float32] | None:
    """Return the numbers of a flat JSON array as FP32, [count]; None where another reader must read it.

    Args:
        start: offset behind its opening bracket.
        end: offset of its closing bracket.
    """
    if start < _BEFORE_BYTES or end < start + _LEAST_BYTES:
        return None
    found = np.empty(count, np.float32)
    read: int = _read(np.frombuffer(text, np.uint8), _U(start), _U(end), found)
    return found if read == count else None


@_inline  # type: ignore[untyped-decorator]
def _eight(digits: Any) -> Any:
    """Return the number in eight digits, the first in the lowest byte, each as its value."""
    pairs = ((digits & _U(0x0F0F0F0F0F0F0F0F)) * _U(10 * 256 + 1)) >> _8
    fours = ((pairs & _U(0x00FF00FF00FF00FF)) * _U(100 * 65536 + 1)) >> _16
    return ((fours & _U(0x0000FFFF0000FFFF)) * _U(10000 * 2**32 + 1)) >> _U(32)


@_inline  # type: ignore[untyped-decorator]
def _others(digits: Any) -> Any:
    """Return bits of the bytes that are above 9; 0 where all are digits."""
    return ((digits + _U(0x7676767676767676)) | digits) & _U(0x8080808080808080)


@_inline  # type: ignore[untyped-decorator]
def _is_sure(value: Any) -> Any:
    """Return whether a number rounds to the same FP32 however its FP64 was rounded."""
    return np.float32(value * _LESS) == np.float32(value * _MORE)


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _one(text: Any, at: Any, end: Any) -> tuple[float, bool]:
    """Return the number between two offsets, whatever its form, and whether it is valid and sure; the slow path."""
    while at < end and (text[at] == _SPACE or 9 <= text[at] <= 10 or text[at] == 13):
        at += _1
    minus = text[at] == _MINUS
    at += _U(minus)
    mantissa, digits, scale, exponent = _0, _0, 0, 0
    first, is_integer = at, True
    while at < end and _NIL <= text[at] <= _NINE:
        mantissa = mantissa * _U(10) + _U(text[at] - _NIL)
        digits += _U(digits != _0 or text[at] != _NIL)
        at += _1
    fine = at > first and (text[first] != _NIL or at == first + _1)
    if at < end and text[at] == _POINT:
        at += _1
        first, is_integer = at, False
        while at < end and _NIL <= text[at] <= _NINE:
            mantissa = mantissa * _U(10) + _U(text[at] - _NIL)
            digits += _U(digits != _0 or text[at] != _NIL)
            scale += 1
            at += _1
        fine &= at > first
    if at < end and (text[at] | 32) == ord("e"):
        at += _1
        is_integer = False
        down = text[at] == _MINUS
        at += _U(down or text[at] == _PLUS)
        first = at
        while at < end and _NIL <= text[at] <= _NINE and exponent < 1000:
            exponent = exponent * 10 + int(text[at] - _NIL)
            at += _1
        fine &= at > first
        exponent = -exponent if down else exponent
    while at < end and (text[at] == _SPACE or 9 <= text[at] <= 10 or text[at] == 13):
        at += _1
    power = exponent - scale
    if not fine or at != end or digits > _19 or not -_FURTHEST <= power <= _FURTHEST:
        return 0.0, False
    value = np.float64(mantissa)
    value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
    value = -value if minus and not (is_integer and mantissa == _0) else value
    is_exact = mantissa < _EXACT and -22 <= power <= 22
    return value, (is_exact or _is_sure(value)) and np.isfinite(np.float32(value))


@_inline  # type: ignore[untyped-decorator]
def _borders(text: Any, base: Any, end: Any) -> Any:
    """Return masks of the commas and the points in the next 64 bytes; the end of the numbers counts as a comma."""
    left = end - base
    if left >= _64:
        return places(text, base, _COMMA), places(text, base, _POINT)
    commas = points = _0
    if left > _0:  # no byte behind the text is read
        commas = places(text, end - _64, _COMMA) >> (_64 - left)
        points = places(text, end - _64, _POINT) >> (_64 - left)
    return commas | _1 << left, points


@_inline  # type: ignore[untyped-decorator]
def _decimal(text: Any, first: Any, point: Any, stop: Any) -> Any:
    """Return the number of digits, a point and digits, and whether it is valid and sure; `_one` reads others."""
    whole, fraction = point - first, stop - point - _1
    proper = (text[first] != _NIL) | (whole == _1)
    ahead = word(text, point - _8) ^ _ZEROS
    last = word(text, stop - _8) ^ _ZEROS
    if (whole + fraction <= _8) & (whole > _0) & (fraction > _0):
        digits = (last & _KEEP[fraction]) | ((ahead & _KEEP[whole]) >> (fraction << _3))
        return np.float64(np.int64(_eight(digits))) / _POWERS[fraction], (_others(digits) == _0) & proper
    if (whole - _1 >= _8) | (fraction - _1 >= _19) | (whole + fraction > _19):
        return 0.0, False
    ahead &= _KEEP[whole]
    last &= _KEEP[min(fraction, _8)]
    middle = (word(text, stop - _16) ^ _ZEROS) & _KEEP[min(max(fraction, _8) - _8, _8)]
    upper = (word(text, stop - _24) ^ _ZEROS) & _KEEP[max(fraction, _16) - _16]
    mantissa = _eight(ahead) * _INTEGERS[fraction] + _eight(last)
    mantissa += _eight(middle) * _INTEGERS[8] + _eight(upper) * _INTEGERS[16]
    value = np.float64(mantissa) / _POWERS[fraction]
    strange = _others(ahead) | _others(last) | _others(middle) | _others(upper)
    return value, (strange == _0) & proper & ((mantissa < _EXACT) | _is_sure(value))


@_inline  # type: ignore[untyped-decorator]
def _integer(text: Any, first: Any, stop: Any) -> Any:
    """Return the number of up to eight digits, and whether it is valid; `_one` reads others."""
    count = stop - first
    if (count - _1 >= _8) | ((text[first] == _NIL) & (count > _1)):
        return 0.0, False
    digits = (word(text, stop - _8) ^ _ZEROS) & _KEEP[count]
    return np.float64(np.int64(_eight(digits))), _others(digits) == _0


@numba.njit(_SIGNATURE, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _read(text: Any, at: Any, end: Any, found: Any) -> int:
    """Read numbers into `found`; return their count, -1 for too many or unsupported text."""
    base = field = at
    count = point = rare = _0
    size = _U(len(found))
    while base <= end:
        commas, points = _borders(text, base, end)
        while commas != _0:
            stop = base + lowest(commas)
            before = points & (commas ^ (commas - _1))
            commas &= commas - _1
            if before != _0:
                point = base + lowest(before)
                points ^= before
            first = field + _U(text[field] == _SPACE)
            minus = _U(text[first] == _MINUS)
            first += minus
            if point >= first:
                value, fine = _decimal(text, first, point, stop)
                value *= _SIGNS[minus]
            else:
                value, fine = _integer(text, first, stop)
                value = value * _SIGNS[minus] + 0.0  # JSON integers have no negative zero
            if not fine:
                value, fine = _one(text, field, stop)
                rare += _1
                if not fine or rare > _64 + (count >> _3):
                    return -1
            if count == size:
                return -1
            found[count] = value
            count += _1
            field = stop + _1
        if points != _0:
            point = base + lowest(points)
        base += _64
    return int(count)
