"""Shape checks of support vectors, neighbours' trees, centers and splines, on which compiled code relies."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from serving_runtime.backends.trees.nodes import check_below
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError

_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_IMPLEMENTATIONS = {
    "SVC": "c_svc",
    "NuSVC": "nu_svc",
    "OneClassSVM": "one_class",
    "SVR": "epsilon_svr",
    "NuSVR": "nu_svr",
}


def _support(estimator: Any, where: str) -> None:
    """Check the arrays that libsvm copies by its counts of classes and support vectors (sklearn: libsvm_helper.c)."""
    kind = type(estimator).__name__
    if estimator.kernel not in _KERNELS:
        raise ModelError(f"{where} has the kernel {estimator.kernel!r}; served are {', '.join(_KERNELS)}")
    vectors, coefficients, counts = estimator.support_vectors_, estimator._dual_coef_, np.asarray(estimator._n_support)
    rows, classes = len(estimator.support_), len(counts) if kind in ("SVC", "NuSVC") else 2
    _need(estimator._impl == _IMPLEMENTATIONS[kind] and classes > 1, where)
    _need(vectors.shape == (rows, estimator.n_features_in_), where)
    _need(bool((counts >= 0).all()) and len(counts) == classes, where)
    _need(kind not in ("SVC", "NuSVC") or counts.sum() == rows, where)
    _need(coefficients.shape == (classes - 1, rows), where)
    sparse = scipy.sparse.issparse(vectors)
    _need(sparse == estimator._sparse == scipy.sparse.issparse(coefficients), where)
    _need(not sparse or coefficients.nnz == (classes - 1) * rows, where)
    pairs = classes * (classes - 1) // 2
    _need(len(estimator._intercept_) == pairs, where)
    _need(all(len(each) in (0, pairs) for each in (estimator._probA, estimator._probB)), where)
    _need(len(estimator._probA) == len(estimator._probB) or kind in ("SVR", "NuSVR"), where)


def _neighbours_tree(tree: Any, where: str) -> None:
    """Check a KDTree or BallTree (sklearn: neighbors/_binary_tree): node i has the children 2i + 1 and 2i + 2."""
    data, order, nodes, bounds, leaf_size, levels, count = (np.asarray(part) for part in tree.__getstate__()[:7])
    rows, features = data.shape
    _need(order.shape == (rows,) and rows > 0 and features > 0, where)
    check_below(order, rows, where, "the row")
    _need(bool(leaf_size > 0) and 0 < int(levels) < 64 and int(count) == len(nodes) == 2 ** int(levels) - 1, where)
    sides = 2 if type(tree).__name__ == "KDTree" else 1
    _need(bounds.shape == (sides, count, features), where)
    starts, ends = nodes["idx_start"], nodes["idx_end"]
    _need(bool((starts >= 0).all() and (starts <= ends).all() and (ends <= rows).all()), where)
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    check_below(2 * inner + 2, int(count), where, "the child")
    weights = tree.__getstate__()[12]
    _need(weights is None or len(weights) == rows, where)


def _neighbours(estimator: Any, where: str) -> None:
    """Check the classes of the neighbours' rows, which are counted by their numbers."""
    rows = estimator._fit_X.shape[0] if getattr(estimator, "_fit_X", None) is not None else 0
    tree = getattr(estimator, "_tree", None)
    if tree is not None:
        _need(type(tree).__name__ in ("KDTree", "BallTree") and len(np.asarray(tree.data)) == rows, where)
    classes = getattr(estimator, "classes_", None)
    if classes is None or not hasattr(estimator, "_y"):
        return
    labels = np.asarray(estimator._y)
    _need(len(labels) == rows, where)
    columns = [(labels, classes)] if labels.ndim == 1 else list(zip(labels.T, classes, strict=True))
    for column, known in columns:
        check_below(column, len(known), where, "the class")


def _centers(estimator: Any, where: str) -> None:
    centers: Array = estimator.cluster_centers_
    _need(centers.ndim == 2 and centers.shape[1] == estimator.n_features_in_ and len(centers) > 0, where)


def _spline(spline: Any, where: str) -> None:
    knots, degree = np.asarray(spline.t), spline.k
    _need(isinstance(degree, (int, np.integer)) and 0 <= int(degree) < 64 and knots.ndim == 1, where)
    _need(bool(np.isfinite(knots).all() and (np.diff(knots) >= 0).all()), where)
    _need(len(knots) >= 2 * degree + 2 and len(spline.c) >= len(knots) - degree - 1, where)


def _need(fits: bool, where: str) -> None:
    if not fits:
        raise ModelError(f"{where}: its arrays do not fit one another; save the model again")


_NEIGHBOURS = (
    "KNeighborsClassifier", "RadiusNeighborsClassifier", "KNeighborsRegressor", "RadiusNeighborsRegressor",
    "NearestNeighbors", "KNeighborsTransformer", "RadiusNeighborsTransformer", "LocalOutlierFactor",
)  # fmt: skip

RULES: Mapping[str, tuple[str, Callable[[Any, str], None]]] = {
    **dict.fromkeys(_IMPLEMENTATIONS, ("support_vectors_", _support)),
    **dict.fromkeys(("KDTree", "BallTree"), ("", _neighbours_tree)),
    **dict.fromkeys(_NEIGHBOURS, ("_fit_X", _neighbours)),
    **dict.fromkeys(("KMeans", "MiniBatchKMeans"), ("cluster_centers_", _centers)),
    "BSpline": ("", _spline),
}
