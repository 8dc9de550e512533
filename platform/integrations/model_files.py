"""Which files are models that the serving runtime opens, by their names. Pure; called by the store and what feeds it.

A single file may be called anything where its ending tells what it is, and is stored as `model` with that ending, for
which the runtime looks. Endings that other files have too (labels.txt, config.json) are taken by the whole name only.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

_SUFFIXES = (".onnx", ".graphdef", ".pt2", ".skops", ".ubj")
_NAMES = ("model.json", "model.txt", "xgboost.json")
# Models of several files, which come in folders only.
_IN_FOLDERS = (
    "model.bst",
    "model.plan",
    "model.pt",
    "model.py",
    "model.savedmodel/saved_model.pb",
    "model.xml",
    "saved_model.pb",
)

ACCEPTED = ", ".join([*(f"*{suffix}" for suffix in _SUFFIXES), *_NAMES])
"""As messages list them."""


def stored_name(filename: str) -> str:
    """Return what a single model file is called where the runtime finds it; empty for what is no model file."""
    name = PurePosixPath(filename.lower())
    return f"model{name.suffix}" if name.name in _NAMES or name.suffix in _SUFFIXES else ""


def has_model(paths: Iterable[str], folder: str) -> bool:
    """Return whether a model's file is among those in `folder` (empty for the top)."""
    prefix = f"{folder}/" if folder else ""
    inside = (path.removeprefix(prefix) for path in paths if path.startswith(prefix))
    return any(path in _IN_FOLDERS or ("/" not in path and stored_name(path)) for path in inside)


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
