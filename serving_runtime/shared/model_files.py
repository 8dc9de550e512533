"""Which files are models that the serving runtime opens, by their names and first bytes. Pure; for both sides.

A single file may be called anything where its ending says what it is, and is stored as `model` with that ending, for
which the runtime looks. Of endings that other files have too (config.json) the first bytes tell, except in a folder,
and labels.txt is none. The digest of an artifact is over its files' names too, so that registry and runtime must agree.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

HEAD_BYTES = 4096
"""How many of a file's first bytes tell what it is."""

_SUFFIXES = (".onnx", ".graphdef", ".pt2", ".skops", ".ubj")
_NAMES = ("model.json", "model.txt", "xgboost.json")
_TOLD_BY_CONTENT = (".bst", ".json")
_PICKLES = (".pkl", ".pickle", ".joblib")
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
# As Booster.save_model of XGBoost and LightGBM begins them; XGBoost's objects may have their two fields in any order.
_CONTENTS = {
    "model.json": re.compile(rb'\s*\{\s*("version"\s*:\s*\[[\d\s,]*\]\s*,\s*)?"learner"\s*:\s*\{'),
    "model.ubj": re.compile(rb"\{(?:[iU]|[Il]\x00+|L\x00+)\x07(?:learner\{|version\[)", re.DOTALL),
    "model.txt": re.compile(rb"tree\n(?:version|num_class)="),
}
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

ACCEPTED = ", ".join([*(f"*{suffix}" for suffix in (*_SUFFIXES, *_TOLD_BY_CONTENT)), "model.txt"])
"""As messages list single files."""
IN_FOLDERS = ", ".join([*(f"*{suffix}" for suffix in _SUFFIXES), "model.bst", *_NAMES])
"""As messages list what makes a folder a model."""
WITHOUT_CODE = (
    "a pickle, which is code and is not taken; save the model without code: skops.io.dump(model, 'model.skops'), or as "
    "ONNX: Path('model.onnx').write_bytes(skl2onnx.to_onnx(model, X[:1]).SerializeToString())"
)
"""What a pickle is refused with, the end of a sentence."""


def stored_name(filename: str) -> str:
    """Return what a single model file is called where the runtime finds it; empty for what is no model file."""
    name = PurePosixPath(filename.lower())
    return f"model{name.suffix}" if name.name in _NAMES or name.suffix in _SUFFIXES else ""


def may_be_model(filename: str) -> bool:
    """Return whether a single file of that name can be a model, as far as its name says."""
    return bool(stored_name(filename)) or PurePosixPath(filename.lower()).suffix in _TOLD_BY_CONTENT


def stored_name_by_content(head: bytes) -> str:
    """Return what a single file with these first bytes is called where the runtime finds it; empty for no model."""
    return next((name for name, begins in _CONTENTS.items() if begins.match(head)), "")


def is_pickle(filename: str, head: bytes = b"") -> bool:
    """Return whether a file is a pickle, joblib's or Python's own, by its name or by its first bytes."""
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
