"""Which single files are models, by their names, and how the registry calls them; the control plane has the same rule.

The digest of an artifact is over its files' names too, so that both sides must agree.
"""

from pathlib import PurePosixPath

_SUFFIXES = (".onnx", ".graphdef", ".pt2", ".skops", ".ubj")
_NAMES = ("model.json", "model.txt", "xgboost.json")

ACCEPTED = ", ".join([*(f"*{suffix}" for suffix in _SUFFIXES), *_NAMES])
"""As messages list them."""


def stored_name(filename: str) -> str:
    """Return what a single model file is called in its artifact; empty for what is no model file."""
    name = PurePosixPath(filename.lower())
    return f"model{name.suffix}" if name.name in _NAMES or name.suffix in _SUFFIXES else ""
