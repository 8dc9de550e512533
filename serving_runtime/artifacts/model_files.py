"""Which single files are models, by their names, and how the registry calls them; the control plane has the same rule.

The digest of an artifact is over its files' names too, so that both sides must agree.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

_SUFFIXES = (".onnx", ".graphdef", ".pt2", ".skops", ".ubj")
_NAMES = ("model.json", "model.txt", "xgboost.json")

ACCEPTED = ", ".join([*(f"*{suffix}" for suffix in _SUFFIXES), *_NAMES])
"""As messages list them."""


def stored_name(filename: str) -> str:
    """Return what a single model file is called in its artifact; empty for what is no model file."""
    name = PurePosixPath(filename.lower())
    return f"model{name.suffix}" if name.name in _NAMES or name.suffix in _SUFFIXES else ""


def ensemble_in(paths: Iterable[str]) -> str:
    """Return which folder of a model repository is the ensemble of the others; empty for the files of one model.

    It is the only one with a config.pbtxt and no model: its version's folder is empty, or holds hidden files only.
    """
    models: dict[str, bool] = {}
    for path in paths:
        top, _, inside = path.partition("/")
        if not inside or top.isdecimal():
            return ""
        version, _, file = inside.partition("/")
        models[top] = models.get(top, False) or bool(version.isdecimal() and not file.startswith("."))
    bare = [name for name, has_files in models.items() if not has_files]
    return bare[0] if len(bare) == 1 and len(models) > 1 else ""
