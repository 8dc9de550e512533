"""Input and output model folders of a build."""

import shutil
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from serving_runtime.common.errors import ModelError
from serving_runtime.config import text

CALIBRATION = "calibration.npz"
"""Calibration rows for each input, beside config.pbtxt; the built model goes without."""

_CONFIG, _CONFIGS, _ONNX = "config.pbtxt", "configs", "model.onnx"
_OF_ONNX_RUNTIME = ("cc_model_filenames", "default_model_filename", "instance_group", "optimization", "parameters")
"""Parts of the configuration that a plan drops."""


def onnx_in(model: Path) -> Path:
    """Return the ONNX file of the newest version in a model's folder; raises ModelError where it is missing."""
    if not model.is_dir():
        raise ModelError(f"there is no model folder {model}")
    named = _config(model).default_model_filename or _ONNX
    versions = [path for path in model.iterdir() if path.is_dir() and path.name.isdecimal()]
    newest = max(versions, key=lambda path: int(path.name), default=None)
    if newest is None or not (newest / named).is_file() or not named.endswith(".onnx"):
        raise ModelError(
            f"model '{model.name}' has no ONNX file {named} in its newest version; only ONNX is built from"
        )
    return newest / named


def calibration_in(model: Path) -> Path | None:
    """Return the calibration rows of a model, None where it has none."""
    file = model / CALIBRATION
    return file if file.is_file() else None


def lay_out(model: Path, built: Path, target: Path) -> None:
    """Make `target` a model folder of the file `built` (`model.onnx` or `model.plan`) and the files beside the versions
    of `model`; raises ModelError where `target` exists.

    Its configuration keeps names, shapes and batching. That of a plan names its backend, and drops options of ONNX
    Runtime.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ModelError(f"--output {target} is there already; give a new folder")
    is_plan = built.suffix == ".plan"
    left = {_CONFIG, CALIBRATION, *([_CONFIGS] if is_plan else [])}
    target.mkdir(parents=True, exist_ok=True)
    for path in model.iterdir():
        if path.name in left or path.name.isdecimal():
            continue
        if path.is_dir():
            shutil.copytree(path, target / path.name)
        else:
            shutil.copy2(path, target / path.name)
    if (model / _CONFIG).exists():
        config = _config(model)
        for field in _OF_ONNX_RUNTIME if is_plan else _OF_ONNX_RUNTIME[:2]:
            config.ClearField(field)
        if is_plan:
            config.backend, config.platform = "tensorrt", "tensorrt_plan"
        (target / _CONFIG).write_text(text_format.MessageToString(config), encoding="utf-8")
    (target / "1").mkdir()
    shutil.move(built, target / "1" / built.name)


def _config(model: Path) -> Any:
    return text.read(model / _CONFIG, model.name)
