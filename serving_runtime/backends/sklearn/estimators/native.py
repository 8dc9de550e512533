"""Bounds checks of indices in a loaded estimator, which scikit-learn's compiled code follows unchecked.

    Tree             of decision trees, forests and gradient boosting: children, features, classes
    TreePredictor    of histogram gradient boosting: children, features, sets of categories
    KDTree, BallTree rows, nodes, bounds
    libsvm           support vectors, their classes, coefficients
    k-means, text    shape of the centers, columns of the words
    RandomState      its place in its numbers

Sparse matrices are checked where the walk finds them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serving_runtime.backends.sklearn.estimators import allowed, vectors
from serving_runtime.backends.trees.nodes import check_below, check_nodes
from serving_runtime.common.errors import ModelError

_DECISION_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
            "RandomTreesEmbedding", "GradientBoostingClassifier", "GradientBoostingRegressor")  # fmt: skip
_MAX_CATEGORY = 256  # sklearn: _bitset, eight words of 32 bits


def check(objects: Sequence[Any], filename: str) -> None:
    """Raise ModelError where compiled code would access memory outside an array: bad indices, or mismatched parts."""
    expected = {id(part) for each in objects for part in _parts_of(each)}
    for each in objects:
        kind = type(each).__name__
        if kind in _PARTS and id(each) not in expected:
            raise ModelError(f"{filename}: a {kind} is not where its estimator has it; save the model again")
        fitted, rule = _RULES.get(kind, ("", None))
        if rule is None or (fitted and fitted not in getattr(each, "__dict__", {})):
            continue  # such as the base estimator of an ensemble
        try:
            rule(each, f"{filename}: {kind}")
        except ModelError:
            raise
        except Exception as error:  # a part that is missing, or of another type or shape
            raise ModelError(
                f"{filename}: the parts of {kind} do not fit one another ({error}); save it again"
            ) from error


_PARTS = ("Tree", "TreePredictor", "KDTree", "BallTree")


def _parts_of(estimator: Any) -> list[Any]:
    kind, own = type(estimator).__name__, getattr(estimator, "__dict__", {})
    if kind in _DECISION_TREES:
        return [own.get("tree_")]
    if kind.startswith("HistGradientBoosting"):
        return [part for parts in own.get("_predictors", ()) for part in parts]
    if kind == "KernelDensity":
        return [own.get("tree_")]
    return [own.get("_tree")]


def check_sparse(matrix: Any, where: str) -> None:
    """Raise ModelError for a sparse matrix whose indices are out of bounds."""
    try:
        matrix.check_format(full_check=True)
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{where} is a sparse matrix that is not sound: {error}; save the model again") from error


def _decision_tree(estimator: Any, where: str) -> None:
    tree = estimator.tree_
    _need(f"{type(tree).__module__}.{type(tree).__name__}" == allowed.TREE, where, "its tree is none")
    _need(0 < tree.node_count <= tree.capacity, where, "it has not the nodes that it counts")
    _need(tree.n_features == estimator.n_features_in_, where, "its tree is of other features")
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    check_nodes(left, right, inner, where, max_depth=max(0, tree.max_depth))
    check_below(tree.feature[inner], tree.n_features, where, "the feature")


def _forest(estimator: Any, where: str) -> None:
    """Check trees that get rows unchecked: each has the forest's own features."""
    trees = np.asarray(estimator.estimators_, dtype=object)
    own = estimator.n_features_in_
    fits = all(type(tree).__name__ in _DECISION_TREES and tree.n_features_in_ == own for tree in trees.ravel())
    _need(trees.size > 0 and fits, where, "its trees are of other features")
    if type(estimator).__name__.startswith("GradientBoosting"):
        classes = getattr(estimator, "n_trees_per_iteration_", None)
        _need(trees.ndim == 2 and trees.shape[1] == classes, where, "its trees are of other classes")


def _isolation(estimator: Any, where: str) -> None:
    whole = estimator._max_features == estimator.n_features_in_
    for tree, features in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        fits = type(tree).__name__ in _DECISION_TREES and tree.n_features_in_ == len(features)
        _need(
            fits and (not whole or len(features) == estimator.n_features_in_), where, "its trees are of other features"
        )


def _histogram(estimator: Any, where: str) -> None:
    mapper, features = estimator._bin_mapper, estimator._n_features
    by_category = np.asarray(mapper.is_categorical_)
    _need(by_category.shape == (features,) and estimator.n_features_in_ == features, where, "its features are others")
    for feature in np.flatnonzero(by_category):
        check_below(np.asarray(mapper.bin_thresholds_[feature]), _MAX_CATEGORY, where, "the category")
    for predictors in estimator._predictors:
        _need(len(predictors) == estimator.n_trees_per_iteration_, where, "its trees are of other classes")
        for predictor in predictors:
            _predictor(predictor, by_category, where)


def _predictor(predictor: Any, by_category: Any, where: str) -> None:
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    _need(type(predictor).__name__ == "TreePredictor" and nodes.ndim == 1, where, "its trees are none")
    inner = nodes["is_leaf"] == 0
    check_nodes(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), inner, where)
    split = nodes[inner]
    check_below(split["feature_idx"], len(by_category), where, "the feature")
    categorical = split[split["is_categorical"] != 0]
    _need(bool(by_category[categorical["feature_idx"]].all()), where, "a split is by categories of numbers")
    _need(not len(categorical) or sets.shape[1:] == (8,), where, "its sets of categories are none")
    check_below(categorical["bitset_idx"], len(sets), where, "the set of categories")


def _random_state(state: Any, where: str) -> None:
    """Check the position of a Mersenne twister; PCG64 has none, and others are refused."""
    generator = getattr(state, "bit_generator", None) or state._bit_generator
    kind, found = type(generator).__name__, generator.state
    _need(kind in ("MT19937", "PCG64"), where, f"the generator {kind} is not served")
    if kind == "MT19937":
        _need(0 <= found["state"]["pos"] <= 624, where, "its place is past its numbers")


def _vocabulary(estimator: Any, where: str) -> None:
    """Check the columns of words: they become the indices of a sparse matrix."""
    words = estimator.vocabulary_
    columns = np.array(list(words.values()) or [0])
    _need(columns.dtype.kind in "iu", where, "its words have no columns")
    check_below(columns, max(1, len(words)), where, "the column of a word")


def _need(fits: bool, where: str, what: str) -> None:
    if not fits:
        raise ModelError(f"{where}: {what}; save the model again")


_RULES: Mapping[str, tuple[str, Callable[[Any, str], None]]] = {
    **dict.fromkeys(_DECISION_TREES, ("tree_", _decision_tree)),
    **dict.fromkeys(_FORESTS, ("estimators_", _forest)),
    "IsolationForest": ("estimators_", _isolation),
    **dict.fromkeys(("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), ("_predictors", _histogram)),
    **dict.fromkeys(("RandomState", "Generator"), ("", _random_state)),
    **dict.fromkeys(("CountVectorizer", "TfidfVectorizer"), ("vocabulary_", _vocabulary)),
    **vectors.RULES,
}
"""By the name of a type: the attribute of a fitted one, and its invariant."""
