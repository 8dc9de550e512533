"""LightGBM backend: models in its text format."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightgbm

from serving_runtime.backends import tabular
from serving_runtime.backends.parameters import backend_settings, merged, one_line
from serving_runtime.backends.tabular import FP32, FP64, TabularModel
from serving_runtime.backends.trees import predictions
from serving_runtime.backends.trees.lightgbm_file import read_head
from serving_runtime.backends.trees.predictions import TreeFacts
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature

PARAMETERS = ("num_threads", *predictions.PARAMETERS)

_MULTICLASS = ("multiclass", "multiclassova")


class LightGBMBackend:
    """Opens models saved by `Booster.save_model`."""

    platform = ""
    default_filename = "model.txt"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=lightgbm,key=value settings; raises ModelError."""
        self.default_max_batch_size, self._settings = backend_settings("lightgbm", settings, PARAMETERS, 256)

    def load(self, file: Path, options: BackendOptions) -> TabularModel:
        parameters = merged("lightgbm", self._settings, options.parameters, PARAMETERS)
        threads = parameters.number("num_threads", 1, 0, 1024)
        facts = _facts(read_head(file))
        answer = predictions.answer(facts, parameters)
        signature = Signature(
            (tabular.input_spec(options.inputs, facts.features, FP32, (FP32, FP64)),),
            (tabular.one_output(options.outputs, answer.width, (FP32, FP64)),),
        )
        booster = _booster(file)
        return TabularModel(
            signature,
            lambda rows: [answer.of(booster.predict(rows, num_threads=threads).reshape(len(rows), facts.width))],
        )


def _booster(file: Path) -> Any:
    try:
        return lightgbm.Booster(model_file=str(file))
    except Exception as error:
        raise ModelError(f"{file.name} is not a LightGBM model: {one_line(error)}") from error


def _facts(head: Mapping[str, str]) -> TreeFacts:
    features, width = int(head["max_feature_idx"]) + 1, int(head["num_tree_per_iteration"])
    objective = head.get("objective", "").partition(" ")[0]
    if objective in _MULTICLASS:
        return TreeFacts(features, width, width)
    return TreeFacts(features, width, 2 if objective == "binary" else 0)
