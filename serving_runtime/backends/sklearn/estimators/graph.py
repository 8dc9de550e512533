"""Object graph check of a loaded estimator: types, functions, parameters, and indices that compiled code follows.

The file's schema was checked before it was loaded (`schema`); here the loaded objects are.
"""

import inspect
import types
from collections.abc import Iterator, Set
from typing import Any

import numpy as np
import scipy.sparse

from serving_runtime.backends.sklearn.estimators import allowed, native
from serving_runtime.backends.sklearn.estimators.schema import untrusted
from serving_runtime.common.errors import ModelError

_PLAIN = (bool, int, float, complex, str, bytes, type(None), slice, np.generic, np.dtype)
_KNOWN = allowed.ESTIMATORS | allowed.LOSSES | allowed.RANDOM | {allowed.TREE}


def check(root: Any, filename: str, trusted: Set[str]) -> list[Any]:
    """Return the objects of a loaded model, the estimators among them.

    Raises ModelError, one sentence, for types, functions and values of parameters that are not allowed, and for parts
    that do not fit one another. An object of a type that the operator trusts may have any parameters.
    """
    found: list[Any] = []
    unknown: set[str] = set()
    for value, place, owner in _walk(root):
        name = type_name(type(value))
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)):
            _check_function(value, place, owner, unknown, trusted)
        elif isinstance(value, type):
            if not issubclass(value, (np.generic, bool, int, float, str)) and type_name(value) not in trusted:
                unknown.add(type_name(value))
        elif scipy.sparse.issparse(value):
            native.check_sparse(value, f"{filename}: {place}")
        elif name in trusted and name not in _KNOWN:
            found.append(value)
        elif name not in _KNOWN:
            unknown.add(name)
        else:
            if name not in trusted:
                _check_parameters(value, filename)
            found.append(value)
    if unknown:
        raise ModelError(untrusted(filename, sorted(unknown)))
    native.check(found, filename)
    return found


def type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _walk(root: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield what is neither plain nor a container, once each, with its attribute and its owner."""
    stack: list[tuple[Any, str, Any]] = [(root, "", None)]
    seen: set[int] = set()
    while stack:
        value, place, owner = stack.pop()
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen.add(id(value))
        if type(value) in (list, tuple, set, frozenset):
            stack += [(each, place, owner) for each in value]
        elif isinstance(value, dict) and type_name(type(value)) in allowed.CONTAINERS:
            stack += [(each, place, owner) for pair in value.items() for each in pair]
        elif type(value) in (np.ndarray, np.ma.MaskedArray):
            if value.dtype.hasobject:
                stack += [(each, place, owner) for each in np.asarray(value).ravel().tolist()]
        else:
            yield value, place, owner
            if not isinstance(value, (type, types.FunctionType, types.MethodType)):
                stack += [(each, name, value) for name, each in getattr(value, "__dict__", {}).items()]


def _check_function(value: Any, place: str, owner: Any, unknown: set[str], trusted: Set[str]) -> None:
    """Record a function that is not listed, or that is where an estimator has no function of its own."""
    if isinstance(value, types.MethodType):
        name = f"{type_name(type(value.__self__))}.{value.__name__}"
        fits = False
    else:
        name = f"{getattr(value, '__module__', None) or 'numpy'}.{value.__name__}"
        fits = place in allowed.FUNCTION_PLACES and (isinstance(value, np.ufunc) or name in allowed.FUNCTIONS)
    if not fits and name not in trusted:
        unknown.add(f"{name} as {type(owner).__name__}.{place}" if owner is not None else name)


def _check_parameters(estimator: Any, filename: str) -> None:
    """Raise ModelError for a parameter that would read files, run code or hide a method of its estimator's."""
    kind = type(estimator).__name__
    rules = {**allowed.PARAMETERS, **(allowed.HASHERS if kind in ("HashingVectorizer", "FeatureHasher") else {})}
    for name, value in getattr(estimator, "__dict__", {}).items():
        if name in rules and not rules[name][0](value):
            raise ModelError(
                f"{filename}: {kind} has {name}={_short(value)}, which is not served; {name} must be {rules[name][1]}: "
                "set it and save the model again"
            )
        hidden = inspect.getattr_static(type(estimator), name, None)
        if isinstance(hidden, (types.FunctionType, classmethod, staticmethod)):
            raise ModelError(f"{filename}: {kind} has a value in place of its method {name}; save the model again")


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float)) else f"<{type(value).__name__}>"
    return text if len(text) <= 40 else f"{text[:40]}..."
