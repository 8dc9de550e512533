"""XGBoost backend: models from JSON and UBJSON, the two formats that hold trees and no code.

`Booster.inplace_predict` reads the rows in place and may run in several threads at once (XGBoost: prediction).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from serving_runtime.backends import tabular
from serving_runtime.backends.parameters import backend_settings, merged, one_line
from serving_runtime.backends.tabular import FP32, TabularModel
from serving_runtime.backends.trees import predictions, xgboost_file
from serving_runtime.backends.trees.predictions import TreeFacts
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature

PARAMETERS = ("nthread", *predictions.PARAMETERS)

_IN_PLACE = ("gbtree", "dart")
_PROBABILITY = ("binary:logistic", "reg:logistic")
_SOFTMAX = ("multi:softmax", "multi:softprob")


class XGBoostBackend:
    """Opens models saved by `Booster.save_model`."""

    platform = ""
    default_filename = "xgboost.json"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=xgboost,key=value settings; raises ModelError."""
        self.default_max_batch_size, self._settings = backend_settings("xgboost", settings, PARAMETERS, 256)

    def load(self, file: Path, options: BackendOptions) -> TabularModel:
        parameters = merged("xgboost", self._settings, options.parameters, PARAMETERS)
        threads = parameters.number("nthread", 1, 0, 1024)
        booster = _booster(file, threads)
        learner = _learner(booster, file.name)
        kind = learner["gradient_booster"]["name"]
        if kind not in _IN_PLACE:
            raise ModelError(f"{file.name} is a model of the booster {kind}; served are {' and '.join(_IN_PLACE)}")
        objective = learner["objective"]["name"]
        if objective == "multi:softmax":  # otherwise the classes' probabilities would be lost
            booster.set_param({"objective": "multi:softprob"})
        facts = _facts(booster, learner["learner_model_param"], objective)
        answer = predictions.answer(facts, parameters)
        signature = Signature(
            (tabular.input_spec(options.inputs, facts.features, FP32, (FP32,)),),
            (tabular.one_output(options.outputs, answer.width, (FP32,)),),
        )
        return TabularModel(
            signature,
            lambda rows: [answer.of(booster.inplace_predict(rows, strict_shape=True))],
        )


def _booster(file: Path, threads: int) -> Any:
    """Return the model in a file of any name; both formats begin with a brace."""
    try:
        content: Any = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read: {error.strerror}") from error
    if not content.startswith(b"{"):
        raise ModelError(f"{file.name} is not an XGBoost model in JSON or UBJSON, as Booster.save_model writes them")
    xgboost_file.check(content, file.name)
    try:
        return xgboost.Booster({"nthread": threads}, model_file=bytearray(content))
    except Exception as error:
        raise ModelError(f"{file.name} is not an XGBoost model: {_reason(error)}") from error


def _learner(booster: Any, name: str) -> Any:
    """Return XGBoost's own view of a model; raises ModelError for parameters that its objective does not accept."""
    try:
        return json.loads(booster.save_config())["learner"]
    except xgboost.core.XGBoostError as error:
        raise ModelError(f"{name} is not an XGBoost model: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return XGBoost's message without time and source location: "[02:30:47] /workspace/src/x.cc:1: Expecting ..."."""
    text = one_line(error)
    return text.partition(".cc:")[2].partition(": ")[2] or text


def _facts(booster: Any, model: Mapping[str, str], objective: str) -> TreeFacts:
    features, classes = int(model["num_feature"]), int(model["num_class"])
    if not features:
        raise ModelError("it says nothing about its features; it was saved before it was trained")
    if objective in _SOFTMAX:
        return TreeFacts(features, classes, classes, answers_class=objective == "multi:softmax")
    width = booster.inplace_predict(np.zeros((1, features), "f4"), strict_shape=True).shape[1]
    return TreeFacts(features, width, 2 if objective in _PROBABILITY and width == 1 else 0)
