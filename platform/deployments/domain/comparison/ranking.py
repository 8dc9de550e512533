"""Top-k agreement: whether two rankings of the same classes have the same best ones. Pure numpy."""

import numpy as np
from numpy.typing import NDArray

from common.tensors import Array


def looks_like_scores(values: Array) -> bool:
    """Return whether the last axis may be classes with a score each: floats, and more than one of them."""
    return values.dtype.kind == "f" and values.ndim > 0 and values.shape[-1] > 1


def same_best(stable: Array, shadow: Array, k: int) -> NDArray[np.bool_]:
    """Return for each ranking whether there are k classes that are the best k of both sides.

    Where scores are equal, a ranking leaves open which of them are among the best; any choice counts. A score that is
    no number is the worst.

    Args:
        stable, shadow: [..., classes], of one shape; at least one class.

    Returns:
        [rankings], the leading axes in row-major order.
    """
    classes = stable.shape[-1]
    k = min(k, classes)
    surely_stable, maybe_stable = _among_best(stable.reshape(-1, classes), k)
    surely_shadow, maybe_shadow = _among_best(shadow.reshape(-1, classes), k)
    needed, possible = surely_stable | surely_shadow, maybe_stable & maybe_shadow
    fits = (needed.sum(axis=1) <= k) & (possible.sum(axis=1) >= k)
    return np.asarray(fits & ~(needed & ~possible).any(axis=1))


def _among_best(scores: Array, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which classes must be among the k best, and which may be."""
    scores = np.where(np.isnan(scores), -np.inf, scores)
    kth = np.partition(scores, -k, axis=1)[:, -k, None]
    return scores > kth, scores >= kth
