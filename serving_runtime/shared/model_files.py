"""Model file formats, recognized by names and first bytes, for runtime and control plane alike. Pure.

A single file may have any name whose ending identifies it, and is stored as `model` with that ending, which the
runtime looks for. Where other files have the ending too (config.json) the first bytes decide, except in a folder;
labels.txt is no model. The digest of an artifact covers its files' names, so registry and runtime must agree.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

HEAD_BYTES = 4096
"""How many of a file's first bytes identify it."""

_SUFFIXES = (".onnx", ".graphdef", ".pt2", ".skops", ".ubj")
_NAMES = ("model.json", "model.txt", "xgboost.json")
_BY_CONTENT = (".bst", ".json")
_PICKLES = (".pkl", ".pickle", ".joblib")
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
# Beginnings of XGBoost's and LightGBM's Booster.save_model; XGBoost's objects may have their two fields in any order.
_CONTENTS = {
    "model.json": re.compile(rb'\s*\{\s*("version"\s*:\s*\[[\d\s,]*\]\s*,\s*)?"learner"\s*:\s*\{'),
    "model.ubj": re.compile(rb"\{(?:[iU]|[Il]\x00+|L\x00+)\x07(?:learner\{|version\[)", re.DOTALL),
    "model.txt": re.compile(rb"tree\n(?:version|num_class)="),
}
# Models of several files, which exist in folders only.
_IN_FOLDERS = (
    "model.bst",
    "model.plan",
    "model.pt",
    "model.py",
    "model.savedmodel/saved_model.pb",
    "model.xml",
    "saved_model.pb",
)

ACCEPTED = ", ".join([*(f"*{suffix}" for suffix in (*_SUFFIXES, *_BY_CONTENT)), "model.txt"])
"""Single files, as listed in messages."""
IN_FOLDERS = ", ".join([*(f"*{suffix}" for suffix in _SUFFIXES), "model.bst", *_NAMES])
"""Folder models, as listed in messages."""
WITHOUT_CODE = (
    "a pickle, which is code and is not taken; save the model without code: skops.io.dump(model, 'model.skops'), or as "
    "ONNX: Path('model.onnx').write_bytes(skl2onnx.to_onnx(model, X[:1]).SerializeToString())"
)
"""Refusal of a pickle, the end of a sentence."""


def stored_name(filename: str) -> str:
    """Return the stored name of a single model file, which the runtime looks for; empty for other files."""
    name = PurePosixPath(filename.lower())
    return f"model{name.suffix}" if name.name in _NAMES or name.suffix in _SUFFIXES else ""


def may_be_model(filename: str) -> bool:
    """Return whether a single file of that name can be a model, judged by its name only."""
    return bool(stored_name(filename)) or PurePosixPath(filename.lower()).suffix in _BY_CONTENT


def stored_name_by_content(head: bytes) -> str:
    """Return the stored name of a single file with these first bytes; empty for no model."""
    return next((name for name, begins in _CONTENTS.items() if begins.match(head)), "")


def is_pickle(filename: str, head: bytes = b"") -> bool:
    """Return whether a file is a pickle, of joblib or Python, by its name or its first bytes."""
    return PurePosixPath(filename.lower()).suffix in _PICKLES or bool(_PICKLE.match(head))


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
