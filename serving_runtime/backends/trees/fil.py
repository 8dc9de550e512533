"""FIL backend of Triton, by name: model folders written for it are served by the libraries that trained the trees.

Parameters of FIL's own tree layout on a device are accepted and ignored; no prediction depends on them. Models that
only treelite can read are refused.
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
    """Opens models of `model_type`."""

    platform = ""
    default_filename = "xgboost.json"
    default_max_batch_size = 256

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Raise ModelError for any setting."""
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
