"""Tensor difference: one output of the shadow against stable's. Pure numpy.

All figures are symmetric in the two sides. A relative difference is one to the larger of the two magnitudes, so that it
is at most 2 and 0 has one too.
"""

import warnings
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from common.tensors import Array, Tensor
from deployments.domain.comparison.comparison_policy import Tolerance
from deployments.domain.comparison.ranking import looks_like_scores, same_best

Rows = NDArray[np.float64]
MOST = 1e300
"""Value of a difference without a size: NaN on one side, or types that cannot be subtracted."""


class Kind(StrEnum):
    """The relation of two outputs.

    Equal: to the last bit. Within, Beyond: of the tolerance. NotFinite: NaN or infinities are not at the same places.
    Shape, Datatype: changed. Missing, Extra: the shadow lacks the output, or stable does.
    """

    EQUAL = "Equal"
    WITHIN = "Within"
    BEYOND = "Beyond"
    NOT_FINITE = "NotFinite"
    SHAPE = "Shape"
    DATATYPE = "Datatype"
    MISSING = "Missing"
    EXTRA = "Extra"

    @property
    def is_structural(self) -> bool:
        """Return whether the outputs cannot be subtracted."""
        return self in (Kind.SHAPE, Kind.DATATYPE, Kind.MISSING, Kind.EXTRA)


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One output, compared.

    Attributes:
        agrees: [rows], whether each row is within the tolerance.
        max_abs, max_rel, angle: [rows], the largest differences and 1 - cosine; empty without any.
        excess: the largest difference as a multiple of the tolerance; above 1 is beyond, MOST where it has no size.
        rankings, flips: how many best classes were compared, and how many differ (top-1).
        rankings_k, flips_k: the same of the k best, where the policy asks for them.
        message: what differs, in words; empty where nothing does.
    """

    output: str
    datatype: str
    kind: Kind
    agrees: NDArray[np.bool_]
    max_abs: Rows
    max_rel: Rows
    angle: Rows
    excess: float = 0.0
    rankings: int = 0
    flips: int = 0
    rankings_k: int = 0
    flips_k: int = 0
    message: str = ""


def structural(output: str, datatype: str, kind: Kind, rows: int, message: str) -> Difference:
    """Return a difference without measurable values."""
    none = np.zeros(0)
    return Difference(output, datatype, kind, np.zeros(rows, bool), none, none, none, excess=MOST, message=message)


def compare_tensors(output: str, stable: Tensor, shadow: Tensor, tolerance: Tolerance, rows: int) -> Difference:
    """Return the difference of an output of the shadow to stable's.

    Args:
        rows: how many rows the first axis has; 1 where the whole tensor is one row.
    """
    if stable.datatype != shadow.datatype:
        changed = f"the datatype is {shadow.datatype}, stable's is {stable.datatype}"
        return structural(output, stable.datatype, Kind.DATATYPE, rows, changed)
    if stable.values.shape != shadow.values.shape:
        changed = f"the shape is {list(shadow.values.shape)}, stable's is {list(stable.values.shape)}"
        return structural(output, stable.datatype, Kind.SHAPE, rows, changed)
    a, b = (np.ascontiguousarray(each.values).reshape(rows, -1) for each in (stable, shadow))
    if stable.datatype in ("BOOL", "BYTES"):
        return _by_equality(output, stable.datatype, a, b)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return _by_size(output, stable, shadow, (a, b), tolerance)


def _by_equality(output: str, datatype: str, a: Array, b: Array) -> Difference:
    unequal = np.asarray(a != b, bool)
    count = int(unequal.sum())
    none = np.zeros(0)
    agrees = np.asarray(~unequal.any(axis=1))
    if not count:
        return Difference(output, datatype, Kind.EQUAL, agrees, none, none, none)
    message = f"{count} of {a.size} elements are not equal"
    return Difference(output, datatype, Kind.BEYOND, agrees, none, none, none, excess=MOST, message=message)


def _by_size(
    output: str, stable: Tensor, shadow: Tensor, rows: tuple[Array, Array], tolerance: Tolerance
) -> Difference:
    a, b = rows
    apart, relative, is_odd = _differences(a, b)
    multiples, agrees = [0.0], np.asarray(~is_odd.any(axis=1))
    if tolerance.asks_closeness:
        over = _multiple(apart, relative, tolerance)
        agrees &= ~(over > 1).any(axis=1)
        multiples.append(_largest(over))
    angle = _angle(a, b, is_odd)
    if tolerance.cosine is not None:
        agrees &= angle <= 1 - tolerance.cosine
        multiples.append(_largest(angle / max(1 - tolerance.cosine, 1e-12)))
    rankings = flips = rankings_k = flips_k = 0
    if looks_like_scores(stable.values) and stable.values.size:
        same = same_best(stable.values, shadow.values, 1)
        rankings, flips = same.size, int((~same).sum())
        if tolerance.top_k is not None:
            same = same_best(stable.values, shadow.values, tolerance.top_k)
            rankings_k, flips_k = same.size, int((~same).sum())
            agrees &= same.reshape(len(a), -1).all(axis=1)
    if is_odd.any():
        kind, multiple = Kind.NOT_FINITE, MOST
    elif not agrees.all():
        kind, multiple = Kind.BEYOND, max(1.0, *multiples)
    else:
        kind, multiple = (Kind.WITHIN if (apart > 0).any() else Kind.EQUAL), max(multiples)
    return Difference(
        output,
        stable.datatype,
        kind,
        agrees,
        max_abs=_row_maxima(apart),
        max_rel=_row_maxima(relative),
        angle=angle,
        excess=min(multiple, MOST),
        rankings=rankings,
        flips=flips,
        rankings_k=rankings_k,
        flips_k=flips_k,
        message=_message(kind, apart, is_odd, flips_k or flips),
    )


def _differences(a: Array, b: Array) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Return the absolute and the relative differences, and where NaN or an infinity is on one side only."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    if a.dtype.kind in "iu":
        # The difference of two integers may not fit their type; it does, modulo 2^64, as an unsigned one.
        high, low = np.maximum(a, b).astype(np.uint64), np.minimum(a, b).astype(np.uint64)
        apart, is_odd = (high - low).astype(np.float64), np.zeros(a.shape, bool)
    else:
        is_same = (x == y) | (np.isnan(x) & np.isnan(y))
        is_odd = ~(np.isfinite(x) & np.isfinite(y)) & ~is_same
        apart = np.where(is_same, 0.0, np.abs(x - y))
    larger = np.maximum(np.abs(x), np.abs(y))
    relative = np.where(np.isfinite(apart), apart / larger, np.abs(x / larger - y / larger))
    relative = np.where(apart == 0, 0.0, relative)
    return np.where(is_odd, MOST, np.minimum(apart, MOST)), np.where(is_odd, MOST, relative), is_odd


def _multiple(apart: Rows, relative: Rows, tolerance: Tolerance) -> Rows:
    """Return each difference as a multiple of the tolerance there."""
    multiples = [
        np.where(difference == 0, 0.0, difference / allowed if allowed else MOST)
        for difference, allowed in ((apart, tolerance.abs), (relative, tolerance.rel))
        if allowed is not None
    ]
    return np.asarray(np.min(multiples, axis=0))


def _angle(a: Array, b: Array, is_odd: NDArray[np.bool_]) -> Rows:
    """Return 1 - cosine of each row's angle, 0 to 2; values that are not finite on both sides are left out.

    Two vectors of zeros have the same direction; a single one has none, which counts as a right angle.
    """
    x, y = (np.where(np.isfinite(each), each, 0.0).astype(np.float64) for each in (a, b))
    x, y = (each / np.maximum(_row_maxima(np.abs(each)), 1e-300)[:, None] for each in (x, y))
    lengths = np.sqrt((x * x).sum(axis=1)), np.sqrt((y * y).sum(axis=1))
    product = lengths[0] * lengths[1]
    cosine = np.where(product > 0, (x * y).sum(axis=1) / np.where(product > 0, product, 1.0), 0.0)
    cosine = np.where((lengths[0] == 0) & (lengths[1] == 0), 1.0, cosine)
    cosine = np.where((x == y).all(axis=1) & ~is_odd.any(axis=1), 1.0, cosine)
    return np.asarray(1 - np.clip(cosine, -1.0, 1.0))


def _row_maxima(values: Rows) -> Rows:
    return values.max(axis=1) if values.shape[1] else np.zeros(len(values))


def _largest(values: Rows) -> float:
    return float(values.max()) if values.size else 0.0


def _message(kind: Kind, apart: Rows, is_odd: NDArray[np.bool_], flips: int) -> str:
    if kind is Kind.NOT_FINITE:
        return f"{int(is_odd.sum())} of {is_odd.size} values are NaN or infinite on one side only"
    if kind is not Kind.BEYOND:
        return ""
    message = f"values differ by up to {_largest(apart):.3g}"
    if not flips:
        return message
    return f"{message}, and {'another class is' if flips == 1 else f'{flips} other classes are'} the best"
