"""Validation of a LightGBM text file, before LightGBM reads it.

LightGBM ends the process at a line that it does not expect, and follows children, features and categories wherever the
file points. So a file is validated strictly: a head, trees as long as the head says, each of lines `key=values` that
occur once and have as many numbers as the tree has leaves (LightGBM: src/io/tree.cpp).
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from serving_runtime.backends.trees.nodes import check_below, check_nodes
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError

_REAL = rb"(?:-?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|inf|nan))"
_WHOLE_LINE = re.compile(rb"(?:-?[0-9]{1,10}(?: -?[0-9]{1,10})*)?")
_REAL_LINE = re.compile(_REAL + rb"(?: " + _REAL + rb")*")
_LINEAR_LINE = re.compile(rb"[-+0-9.eEinfa ]*")
_OBJECTIVE = re.compile(r"[a-z0-9_]+( [a-z0-9_]+:[A-Za-z0-9_.+-]+| [a-z0-9_]+)*")
_KEY = re.compile(rb"[a-z_]+")
_PARAMETERS = re.compile(rb"(?:\[[a-z0-9_]+: [^\x00-\x1f]*\]\n)*\nend of parameters\n")

_PER_SPLIT = ("split_feature", "left_child", "right_child", "decision_type")
_OF_SPLITS = ("threshold", "split_gain", "internal_value", "internal_weight", "internal_count")
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count", "leaf_const")
_NEEDED = ("split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value")
_SINGLE = ("num_leaves", "num_cat", "is_linear", "max_depth")
_OTHERS = ("cat_boundaries", "cat_threshold", "num_features", "leaf_features", "leaf_coeff", "shrinkage")
_KNOWN = frozenset((*_PER_SPLIT, *_OF_SPLITS, *_OF_LEAVES, *_SINGLE, *_OTHERS))
_MAX_CLASSES = 100_000


def read_head(file: Path) -> dict[str, str]:
    """Return the `key=value` lines before the first tree; raises ModelError where the file is incomplete or unsound."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read: {error.strerror}") from error
    if b"\x00" in content:  # after the trees, such a line makes LightGBM loop for ever
        raise ModelError(f"{file.name} is not a LightGBM model in text form: it has bytes that are no text")
    if content.split(b"\n", 1)[0].strip() != b"tree":
        raise ModelError(f"{file.name} is not a LightGBM model in text form, as Booster.save_model writes it")
    start = content.find(b"\nTree=") + 1 or -1  # LightGBM's head ends at the first one, whatever its number is
    head = content[: start if start >= 0 else content.find(b"\n\n")].decode("utf-8", "replace")
    lines = [line.strip().split("=", 1) for line in head.splitlines() if "=" in line]
    found = dict(lines)
    sizes = _check_whole(content, start, found.get("tree_sizes", ""), file.name)
    for key in ("num_class", "num_tree_per_iteration", "max_feature_idx"):
        if not re.fullmatch("[0-9]{1,9}", found.get(key, "")):
            raise ModelError(f"{file.name} is not a LightGBM model: its head has no number {key}")
    if len(found) != len(lines) or "\r" in head:
        raise ModelError(f"{file.name} is not a LightGBM model: its head has a line twice, or bytes that are no text")
    _check_classes(found, len(sizes), file.name)
    features, end = int(found["max_feature_idx"]) + 1, start
    for number, size in enumerate(sizes):
        end += size
        _check_tree(content[end - size : end], number, features, f"{file.name}: tree {number}")
    _, parameters, rest = content[end:].partition(b"\nparameters:")
    if parameters and not _PARAMETERS.match(rest.removeprefix(b"\n")):
        raise ModelError(
            f"{file.name} is cut off or was edited: its parameters are not lines '[name: value]' to an end"
        )
    return found


def _check_whole(content: bytes, start: int, tree_sizes: str, name: str) -> list[int]:
    """Return the trees' lengths; raises ModelError unless they are as long as the head says, and end where it says."""
    texts = tree_sizes.split()
    if start < 0 or not texts or not all(re.fullmatch("[0-9]{1,12}", size) for size in texts):
        raise ModelError(f"{name} is not a LightGBM model: it has no trees")
    sizes = [int(size) for size in texts]
    end = start + sum(sizes)
    if not content[end : end + 64].lstrip().startswith(b"end of trees"):
        raise ModelError(f"{name} is cut off or was edited: its trees do not end where its head says")
    return sizes


def _check_classes(head: Mapping[str, str], trees: int, name: str) -> None:
    """Raise ModelError unless the counts of outputs agree: in the head, the objective and the trees."""
    classes, objective = int(head["num_class"]), head.get("objective", "")
    if objective and not _OBJECTIVE.fullmatch(objective):
        raise ModelError(f"{name} is not a LightGBM model: its objective '{objective[:40]}' is none")
    counts = {
        classes,
        int(head["num_tree_per_iteration"]),
        *map(int, re.findall(r" num_class:([0-9]{1,9})", objective)),
    }
    if len(counts) > 1 or not 0 < classes <= _MAX_CLASSES or trees % classes:
        raise ModelError(f"{name}: its head, objective and trees are not of the same number of classes; save it again")


def _check_tree(content: bytes, number: int, features: int, where: str) -> None:
    lines = _lines(content, number, where)
    leaves, categories = (_single(lines, key, where) for key in ("num_leaves", "num_cat"))
    if leaves < 1:
        raise ModelError(f"{where}: it has no leaf; save the model again")
    for keys, count in ((_PER_SPLIT, leaves - 1), (_OF_SPLITS, leaves - 1), (_OF_LEAVES, leaves)):
        for key in keys:
            _check_count(lines, key, count, where)
    _check_real(lines, "shrinkage", 1, where)
    if _single(lines, "is_linear", where, 0):
        _check_linear(lines, leaves, features, where)
    if leaves == 1:
        return
    missing = [key for key in _NEEDED if key not in lines]
    if missing:
        raise ModelError(f"{where}: it has no line {missing[0]}; save the model again")
    check_below(_whole(lines, "split_feature", where), features, where, "the feature")
    _check_children(_whole(lines, "left_child", where), _whole(lines, "right_child", where), leaves, where)
    _check_categories(lines, categories, where)


def _lines(content: bytes, number: int, where: str) -> dict[str, bytes]:
    first, *rest = content.rstrip(b"\n").split(b"\n")
    if first != b"Tree=%d" % number:
        raise ModelError(f"{where}: it does not begin where the head says; save the model again")
    found: dict[str, bytes] = {}
    for line in rest:
        key, equals, values = line.partition(b"=")
        name = key.decode("ascii", "replace")
        if not equals or not _KEY.fullmatch(key) or name not in _KNOWN or name in found:
            raise ModelError(
                f"{where}: the line '{line[:40].decode('ascii', 'replace')}' is none of a tree's, or twice"
            )
        found[name] = values
    return found


def _check_count(lines: Mapping[str, bytes], key: str, count: int, where: str) -> None:
    """Check that a present line has the right count of numbers; in a tree of one leaf it is empty."""
    if key not in lines or (not count and not lines[key].strip(b" ")):
        return
    if key in _PER_SPLIT:
        _whole(lines, key, where, count)
    else:
        _check_real(lines, key, count, where)


def _check_real(lines: Mapping[str, bytes], key: str, count: int, where: str) -> None:
    line = lines.get(key)
    if line is None:
        return
    if not _REAL_LINE.fullmatch(line) or line.count(b" ") + 1 != count:
        raise ModelError(f"{where}: the line {key} is not of {count} numbers; save the model again")


def _whole(lines: Mapping[str, bytes], key: str, where: str, count: int | None = None) -> Array:
    """Return the integers of a line; raises ModelError for other numbers, or another count."""
    line = lines.get(key, b"")
    found = np.array(line.split(b" ") if line else [], np.int64) if _WHOLE_LINE.fullmatch(line) else None
    if found is None or (count is not None and len(found) != count):
        raise ModelError(f"{where}: the line {key} is not of whole numbers, one for each; save the model again")
    return found


def _single(lines: Mapping[str, bytes], key: str, where: str, default: int | None = None) -> int:
    if key not in lines and default is not None:
        return default
    return int(_whole(lines, key, where, 1)[0])


def _check_children(left: Array, right: Array, leaves: int, where: str) -> None:
    """Check that the splits and leaves are one tree: a negative child is the complement of a leaf's number."""
    splits = leaves - 1
    both = np.stack([left, right])
    if both.min() < -leaves or both.max() >= splits:
        raise ModelError(f"{where}: a child is none of its {splits} splits and {leaves} leaves; save the model again")
    both = np.pad(np.where(both < 0, splits + ~both, both), ((0, 0), (0, leaves)))
    reached = check_nodes(both[0], both[1], np.arange(splits + leaves) < splits, where)
    if not reached.all():
        raise ModelError(f"{where}: a split or leaf of it is no split's child; save the model again")


def _check_categories(lines: Mapping[str, bytes], count: int, where: str) -> None:
    """Check categorical splits: each threshold is the number of a set, each set a range of all sets' bits."""
    by_category = (_whole(lines, "decision_type", where) & 1).astype(bool)
    numbers = np.array(lines["threshold"].split(b" "), np.float64)[by_category]
    if count < 0 or not np.isfinite(numbers).all():
        raise ModelError(f"{where}: a split is by categories that there are not; save the model again")
    check_below(numbers, count, where, "the set of categories")
    if not count:
        return
    ends, bits = _whole(lines, "cat_boundaries", where, count + 1), _whole(lines, "cat_threshold", where)
    if ends[0] != 0 or ends[-1] != len(bits) or (np.diff(ends) < 0).any() or bits.min(initial=0) < 0:
        raise ModelError(f"{where}: its sets of categories are not parts of their list; save the model again")


def _check_linear(lines: Mapping[str, bytes], leaves: int, features: int, where: str) -> None:
    """Check the lines of a tree with linear leaves: as many features and numbers as each leaf declares."""
    counts = _whole({"num_features": lines.get("num_features", b"").strip(b" ")}, "num_features", where, leaves)
    texts = [lines.get(key, b"") for key in ("leaf_features", "leaf_coeff")]
    if "leaf_const" not in lines or not all(_LINEAR_LINE.fullmatch(text) for text in texts):
        raise ModelError(f"{where}: its linear leaves are not whole; save the model again")
    used, numbers = texts[0].split(), texts[1].split()
    if counts.min() < 0 or not counts.sum() == len(used) == len(numbers):
        raise ModelError(f"{where}: its linear leaves have not the numbers that they say; save the model again")
    if not all(_WHOLE_LINE.fullmatch(text) for text in used) or not all(_REAL_LINE.fullmatch(text) for text in numbers):
        raise ModelError(f"{where}: its linear leaves hold what is no number; save the model again")
    check_below(np.array(used, np.int64), features, where, "the feature of a leaf")
