"""scikit-learn backend: estimators from skops files, which name all their types, and from pickles.

A pickle is code, and is opened only where the server allows that. A skops file is checked twice (`estimators`): its
schema before it is loaded, and the loaded objects. Types that are not listed there refuse the load by their names,
unless the operator trusts them: `--backend-config=sklearn,trusted-types=package.Type,...`. Outputs are methods of the
estimator, as in MLServer's runtime: `predict` unless config.pbtxt lists others.
"""

import warnings
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import skops.io

from serving_runtime.backends import tabular
from serving_runtime.backends.parameters import backend_settings, merged, one_line
from serving_runtime.backends.sklearn.estimators import graph, schema
from serving_runtime.backends.tabular import FP32, FP64, TabularModel
from serving_runtime.common.datatypes import BYTES, DATATYPES, Array, Datatype
from serving_runtime.common.errors import CodeNotAllowed, InvalidArgument, ModelError
from serving_runtime.config.model import ALLOW_CODE, BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import VARIABLE

PARAMETERS = ("n_jobs",)
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "transform")

_SETTINGS = (*PARAMETERS, "trusted-types")

_INPUTS = (FP64, FP32, DATATYPES["INT64"], DATATYPES["INT32"], BYTES)
_BY_DTYPE = {datatype.dtype: datatype for datatype in DATATYPES.values() if datatype.name != "BF16"}


class SklearnBackend:
    """Opens estimators saved by `skops.io.dump`."""

    platform = ""
    default_filename = "model.skops"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=sklearn,key=value settings; raises ModelError."""
        self.default_max_batch_size, self._settings = backend_settings("sklearn", settings, _SETTINGS, 256)
        self._trusted = frozenset(filter(None, self._settings.pop("trusted-types", "").split(",")))

    def load(self, file: Path, options: BackendOptions) -> TabularModel:
        parameters = merged("sklearn", self._settings, options.parameters, PARAMETERS)
        if file.suffix == ".skops":
            estimator, parts = _estimator(file, self._trusted)
        else:
            estimator, parts = _unpickled(file, allowed=options.allow_python_models), []
        _set_jobs(estimator, parts, parameters.number("n_jobs", 1, 1, 1024))
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)  # nor does V2 have any
        methods = _methods(estimator, [tensor.name for tensor in options.outputs])
        given = tabular.input_spec(options.inputs, _features(estimator, options), FP64, _INPUTS)
        predict = _Predict(estimator, methods, is_text=given.datatype is BYTES)
        return TabularModel(Signature((given,), _outputs(predict, methods, given)), predict)


class _Predict:
    """Calls the estimator's output methods, one output each."""

    def __init__(self, estimator: Any, methods: Sequence[str], *, is_text: bool) -> None:
        self._calls = [getattr(estimator, name) for name in methods]
        self._is_text = is_text

    def __call__(self, rows: Array) -> list[Array]:
        if self._is_text:
            rows = _texts(rows)
        return [_table(call(rows)) for call in self._calls]


def _estimator(file: Path, trusted: Set[str]) -> tuple[Any, list[Any]]:
    """Return the estimator in a skops file, and its parts; raises ModelError."""
    try:
        schema.check(file, trusted)
        found = skops.io.get_untrusted_types(file=file)
        unknown = [name for name in found if name not in trusted | schema.TRUSTED]
        if unknown:
            raise ModelError(schema.untrusted(file.name, unknown))
        estimator = skops.io.load(file, trusted=found)
        return estimator, graph.check(estimator, file.name, trusted)
    except ModelError:
        raise
    except Exception as error:  # errors of zipfile, json, skops and any type in it
        raise ModelError(f"{file.name} is not a model in skops' format: {one_line(error)}") from error


def _unpickled(file: Path, *, allowed: bool) -> Any:
    """Return the object in a pickle of joblib's or Python's own; raises CodeNotAllowed where code is not allowed."""
    if not allowed:
        raise CodeNotAllowed(
            f"{file.name} is a pickle, which is code: it is opened only from a model repository and where that is "
            f"allowed; {ALLOW_CODE}; skops.io.dump saves a model without code, skl2onnx.to_onnx makes it ONNX"
        )
    try:
        return joblib.load(file)
    except Exception as error:  # any error of the code in it
        raise ModelError(f"{file.name} cannot be unpickled: {one_line(error)}") from error


def _set_jobs(estimator: Any, parts: Sequence[Any], jobs: int) -> None:
    """Set the number of parallel jobs of every part: the stored number is for the machine of the training."""
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    found = {name: jobs for name in parameters if name == "n_jobs" or name.endswith("__n_jobs")}
    if found:
        estimator.set_params(**found)
    for part in parts:  # fitted ones are not parameters of their parents
        if "n_jobs" in getattr(part, "__dict__", {}):
            part.n_jobs = jobs


def _features(estimator: Any, options: BackendOptions) -> int:
    features = getattr(estimator, "n_features_in_", None)
    if features is not None:
        return int(features)
    shape = options.inputs[0].shape if options.inputs else ()
    if not shape:
        raise ModelError("its first step does not say how many features it takes; list the input in config.pbtxt")
    return shape[-1] if shape[-1] != VARIABLE else 1


def _methods(estimator: Any, written: Sequence[str]) -> list[str]:
    """Return the methods to call, those that config.pbtxt lists; raises ModelError for an unknown one."""
    offered = [name for name in METHODS if hasattr(estimator, name)]
    if not offered:
        raise ModelError(f"it is a {type(estimator).__name__}, which has none of the methods {', '.join(METHODS)}")
    for name in written:
        if name not in offered:
            raise ModelError(f"output '{name}' is not a method of this model; there are {', '.join(offered)}")
    return list(written) or offered[:1]


def _outputs(predict: _Predict, methods: Sequence[str], given: TensorSpec) -> tuple[TensorSpec, ...]:
    """Return the outputs for two made-up rows; their datatypes and shapes are recorded nowhere else."""
    made_up = np.full((2, given.shape[1]), b"a" if given.datatype is BYTES else 0, given.datatype.dtype)
    try:
        answers = predict(made_up)
    except Exception as error:
        raise ModelError(f"it cannot answer two rows of {given.shape[1]} features: {one_line(error)}") from error
    return tuple(
        TensorSpec(name, _datatype(name, array), (-1, *array.shape[1:]))
        for name, array in zip(methods, answers, strict=True)
    )


def _datatype(name: str, array: Array) -> Datatype:
    if array.dtype.kind in "OUS":
        return BYTES
    datatype = _BY_DTYPE.get(array.dtype)
    if datatype is None:
        raise ModelError(f"output '{name}' is of {array.dtype}, which the V2 protocol cannot carry")
    return datatype


def _table(answer: Any) -> Array:
    """Return a result as [rows, width]; raises ModelError for one of several arrays."""
    if isinstance(answer, list):
        raise ModelError("it answers several arrays, one for each of its targets, which have no names")
    dense = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)
    return dense.reshape(len(dense), -1)


def _texts(rows: Array) -> Array:
    """Return BYTES elements as texts; a single feature is one-dimensional, as vectorizers take documents."""
    flat = np.empty(rows.size, dtype=object)
    try:
        flat[:] = [element.decode() for element in rows.ravel()]
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"a BYTES element is not UTF-8: {error.reason}") from error
    return flat if rows.shape[1] == 1 else flat.reshape(rows.shape)
