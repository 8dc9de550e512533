"""Decision tree validation: whether a file's nodes form a tree, for libraries that follow them unchecked. Pure.

It checks every tree format before the library reads the file, or before its first prediction.
"""

import numpy as np

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError

MAX_DEPTH = 4096
"""Libraries descend by recursion; no training makes a tree as deep."""


def check_nodes(left: Array, right: Array, inner: Array, where: str, *, max_depth: int = MAX_DEPTH) -> Array:
    """Return the nodes that are reachable from node 0: a mask [nodes].

    Args:
        left, right: the children of each node, integers; those of leaves are ignored.
        inner: which nodes are split, a mask [nodes].

    Raises ModelError, which begins with `where`, for a missing child, for a node with two parents, which includes
    cycles, and for a tree deeper than `max_depth`.
    """
    count = len(inner)
    children = np.concatenate([left[inner], right[inner]])
    if not count or (children.size and (children.min() < 1 or children.max() >= count)):
        raise ModelError(f"{where}: a child is none of its {count} nodes; save the model again")
    if children.size and np.bincount(children, minlength=count).max() > 1:
        raise ModelError(f"{where}: a node has two parents; save the model again")
    reached = np.zeros(count, bool)
    level = np.zeros(1, np.intp)
    for _ in range(max_depth + 1):
        reached[level] = True
        split = level[inner[level]]
        if not split.size:
            return reached
        level = np.concatenate([left[split], right[split]])
    raise ModelError(f"{where}: it is deeper than {max_depth} nodes; train a shallower one")


def check_below(values: Array, end: int, where: str, what: str) -> None:
    """Raise ModelError unless all values are from 0 to before `end`."""
    if values.size and (values.min() < 0 or values.max() >= end):
        wrong = values[(values < 0) | (values >= end)][0]
        raise ModelError(f"{where}: {what} {wrong} is not one of {end}; save the model again")
