"""Triton's FIL backend by name: model folders written for it are served by the libraries that trained the trees.

Parameters that tell FIL's own engine how to lay trees out on a device are taken and change nothing; no answer depends
on them. Models that only treelite can read are refused.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from serving_runtime.backends import registry
from serving_runtime.backends.tabular import TabularModel
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions

_LIBRARIES = {"xgboost_json": "xgboost", "xgboost_ubj": "xgboost", "lightgbm": "lightgbm"}
_LAYOUT = ("algo", "blocks_per_sm", "cuda_async", "enable_async", "is_classifier", "storage_type", "threads_per_tree",
           "transfer_threshold", "use_experimental_optimizations", "xgboost_allow_unknown_field")  # fmt: skip


class FilBackend:
    """Opens what `model_type` names."""

    platform = ""
    default_filename = "xgboost.json"
    default_max_batch_size = 256

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take no settings; raises ModelError for any."""
        for key in settings:
            raise ModelError(f"--backend-config=fil,{key}: this backend takes no settings")

    def load(self, file: Path, options: BackendOptions) -> TabularModel:
        parameters = {key: value for key, value in options.parameters.items() if key not in _LAYOUT}
        model_type = parameters.pop("model_type", "lightgbm" if file.suffix == ".txt" else f"xgboost_{file.suffix[1:]}")
        library = _LIBRARIES.get(model_type)
        if library is None:
            raise ModelError(f"parameter 'model_type' is '{model_type}'; served are {', '.join(sorted(_LIBRARIES))}")
        model = registry.find(library, None, {}).load(file, dataclasses.replace(options, parameters=parameters))
        assert isinstance(model, TabularModel)  # noqa: S101 - both libraries' are
        return model
