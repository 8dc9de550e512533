"""Validation of an XGBoost model's file, before XGBoost reads it, which follows the file unchecked. Pure.

XGBoost: model IO, JSON schema. Both formats hold the same document: learner > gradient_booster (of DART inside another
one) > model > trees, each of arrays with one number per node. A child or a feature out of bounds, or a cycle of nodes,
would crash or hang the server.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from serving_runtime.backends.trees import ubjson
from serving_runtime.backends.trees.nodes import check_below, check_nodes
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError

_TREES = ("gbtree", "dart")
_PLAIN = re.compile(r"[a-z0-9_]+(:[a-z0-9_]+)?")
_SCORES = re.compile(r"\[?-?[0-9.eE+-]+(,-?[0-9.eE+-]+)*\]?")
_MAX_CATEGORY = 1 << 24  # XGBoost: common/categorical.h, the largest one that a float holds exactly
_PER_NODE = ("parents", "split_indices", "split_conditions", "default_left", "loss_changes", "sum_hessian")


def check(content: bytes, name: str) -> None:
    """Raise ModelError for a model whose trees are not trees of its features; boosters without trees pass."""
    try:
        document = _decoded(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name} is not an XGBoost model: {error or 'it is nested too deep'}") from error
    try:
        _check_learner(document["learner"], name)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        detail = f"there is no {error}" if isinstance(error, KeyError) else "a value is of the wrong kind"
        raise ModelError(f"{name} is not an XGBoost model: {detail}; save the model again") from error


def _decoded(content: bytes) -> Any:
    if re.match(rb'\{\s*"', content):
        return json.loads(content, object_pairs_hook=_once)
    return ubjson.decode(content)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it has a name twice in one object")
    return found


def _check_learner(learner: Mapping[str, Any], name: str) -> None:
    booster, param = learner["gradient_booster"], learner["learner_model_param"]
    kind, objective = str(booster["name"]), learner["objective"]
    if not _PLAIN.fullmatch(kind) or not _PLAIN.fullmatch(objective["name"]):
        raise ModelError(f"{name} is not an XGBoost model: the name of its booster or objective is none")
    features, classes, targets = (_number(param, key, default) for key, default in _SIZES)
    groups = max(1, classes, targets)
    own = objective.get("softmax_multiclass_param", {}).get("num_class", str(classes))
    scores = str(param.get("base_score", "0"))
    if int(own) != classes or not _SCORES.fullmatch(scores) or scores.count(",") + 1 not in (1, groups):
        raise ModelError(f"{name}: its objective and its answers are not of the same number; save the model again")
    if kind not in _TREES:
        return
    model = booster["gbtree"]["model"] if kind == "dart" else booster["model"]
    trees, info = model["trees"], _whole(model["tree_info"])
    if _number(model["gbtree_model_param"], "num_trees") != len(trees) or len(info) != len(trees):
        raise ModelError(f"{name}: it has {len(trees)} trees, not as many as it says; save the model again")
    if kind == "dart" and len(booster["weight_drop"]) != len(trees):
        raise ModelError(f"{name}: it has no weight for each of its {len(trees)} trees; save the model again")
    check_below(info, groups, name, "a tree's class")
    _check_iterations(_whole(model.get("iteration_indptr", [0, len(trees)])), len(trees), name)
    _check_categories(model.get("cats", {}), name)
    for number, tree in enumerate(trees):
        if tree["id"] != number:
            raise ModelError(f"{name}: tree {number} has the number {tree['id']}; save the model again")
        _check_tree(tree, features, groups, f"{name}: tree {number}")


_SIZES = (("num_feature", None), ("num_class", "0"), ("num_target", "1"))


def _number(param: Mapping[str, str], key: str, default: str | None = None) -> int:
    """Return a size, which is written as text; raises ValueError for any other value."""
    found = param[key] if default is None else param.get(key, default)
    if not (isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 11):
        raise ValueError(key)
    return int(found)


def _whole(values: Any) -> Array:
    """Return integers as an array [n]; raises ValueError for any other numbers."""
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        raise ValueError("not whole numbers")
    return found.astype(np.int64)


def _check_iterations(ends: Array, trees: int, name: str) -> None:
    if not ends.size or ends[0] != 0 or ends[-1] != trees or (np.diff(ends) < 0).any():
        raise ModelError(f"{name}: its iterations are not those of its {trees} trees; save the model again")


def _check_categories(cats: Mapping[str, Any], name: str) -> None:
    """Check the texts of categories, by which XGBoost encodes columns of texts; numeric rows have none."""
    segments, order = _whole(cats.get("feature_segments", [])), _whole(cats.get("sorted_idx", []))
    check_below(order, max(1, len(order)), name, "a category's place")
    if segments.size and (segments[0] != 0 or segments[-1] != len(order) or (np.diff(segments) < 0).any()):
        raise ModelError(f"{name}: its categories are not those of its features; save the model again")


def _check_tree(tree: Mapping[str, Any], features: int, groups: int, where: str) -> None:
    param = tree["tree_param"]
    nodes, width = _number(param, "num_nodes"), max(1, _number(param, "size_leaf_vector", "1"))
    left, right = _whole(tree["left_children"]), _whole(tree["right_children"])
    for key in ("left_children", "right_children", *_PER_NODE):
        if len(tree[key]) != nodes:
            raise ModelError(f"{where}: {key} has {len(tree[key])} values for {nodes} nodes; save the model again")
    inner = left != -1
    reached = check_nodes(left, right, inner, where)
    if width not in (1, groups) or _number(param, "num_feature") > features:
        raise ModelError(f"{where}: it is not of the model's {features} features and {groups} outputs")
    parents = _whole(tree["parents"])
    split = np.flatnonzero(inner & reached)
    if (parents[left[split]] != split).any() or (parents[right[split]] != split).any():
        raise ModelError(f"{where}: a child has another parent; save the model again")
    check_below(_whole(tree["split_indices"])[split], features, where, "the feature")
    if (left < -1).any() or (left >= nodes).any():
        raise ModelError(f"{where}: a child is none of its {nodes} nodes; save the model again")
    _check_leaves(tree, right[~inner], nodes, width, where)
    _check_splits(tree, nodes, np.flatnonzero(inner), where)


def _check_leaves(tree: Mapping[str, Any], right: Array, nodes: int, width: int, where: str) -> None:
    """Check the leaf values, which for several outputs are in an array of their own."""
    if width == 1:
        if len(tree["base_weights"]) != nodes or (right != -1).any():
            raise ModelError(f"{where}: a leaf has a child, or no value; save the model again")
        return
    check_below(right, len(right), where, "the leaf")
    if len(tree.get("leaf_weights", ())) != len(right) * width or len(tree["base_weights"]) % width:
        raise ModelError(f"{where}: its {len(right)} leaves have not {width} values each; save the model again")


def _check_splits(tree: Mapping[str, Any], nodes: int, inner: Array, where: str) -> None:
    """Check categorical splits: the owner of each, and its range in the list of categories."""
    kinds = _whole(tree.get("split_type", [0] * nodes))
    splits, categories = _whole(tree.get("categories_nodes", [])), _whole(tree.get("categories", []))
    starts, sizes = _whole(tree.get("categories_segments", [])), _whole(tree.get("categories_sizes", []))
    check_below(kinds, 2, where, "the kind of split")
    check_below(categories, _MAX_CATEGORY, where, "the category")
    wanted = inner[kinds[inner] == 1] if len(kinds) == nodes else None
    if wanted is None or len(starts) != len(splits) or len(sizes) != len(splits) or splits.tolist() != wanted.tolist():
        raise ModelError(f"{where}: its splits by categories are not those that it lists; save the model again")
    if (starts < 0).any() or (sizes < 0).any() or (starts > len(categories) - sizes).any():
        raise ModelError(f"{where}: a split has categories past the end of their list; save the model again")
