"""Layout of an artifact as one model's folder in a model repository, under its serving name and version.

Called by `prepare` for a replica and by the fetcher of a model pool.
"""

import shutil
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format

from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.common.errors import ModelError
from serving_runtime.config import text
from serving_runtime.shared.code_files import is_code_file
from serving_runtime.shared.model_files import ensemble_in

_CONFIG, _CONFIGS = "config.pbtxt", "configs"


def check(artifact: Path, digest: str) -> None:
    """Raise ModelError where the files of `artifact` do not match `digest`."""
    if not artifact.is_dir():
        raise ModelError(f"there is no model at {artifact}; push the model version again")
    found = digest_of_folder(artifact)
    if found != digest:
        raise ModelError(f"the model at {artifact} is not the one that was stored: expected {digest}, found {found}")


def lay_out(
    artifact: Path,
    model: Path,
    *,
    version: str,
    config: dict[str, Any],
    with_code: bool = True,
    copy: Callable[[str, str], object] = shutil.copy2,
) -> None:
    """Make the model folder `model`, whose name becomes the model's; what an interrupted run left there is replaced.

    Args:
        with_code: include files that an interpreter or the loader could run (`is_code_file`).
        copy: brings one file from the artifact into the folder.

    Raises:
        ModelError: its config.pbtxt does not parse, or `config` has unknown fields.
    """
    shutil.rmtree(model, ignore_errors=True)
    ensemble = ensemble_in(path.relative_to(artifact).as_posix() for path in artifact.rglob("*") if path.is_file())
    tree = partial(_copy_tree, with_code=with_code, copy=copy)
    if ensemble:
        _lay_out_parts(artifact, ensemble, model, tree)
        artifact = artifact / ensemble
    versions = [path for path in artifact.iterdir() if path.is_dir() and path.name.isdecimal()]
    newest = max(versions, key=lambda path: int(path.name), default=None)
    if newest is None and ensemble:
        tree(artifact, model, {_CONFIG})
        (model / version).mkdir()
    elif newest is None:
        tree(artifact, model / version, {_CONFIG})
    else:
        tree(artifact, model, {_CONFIG, *(path.name for path in versions)})
        tree(newest, model / version)
    if config or (artifact / _CONFIG).exists():
        written = _configured(artifact / _CONFIG, model.name, config)
        (model / _CONFIG).write_text(text_format.MessageToString(written), encoding="utf-8")
    for own in sorted((model / _CONFIGS).glob("*.pbtxt")):  # for `--model-config-name`
        written = _configured(own, model.name, config)
        own.unlink()  # it may be a link to the artifact's
        own.write_text(text_format.MessageToString(written), encoding="utf-8")


def _lay_out_parts(artifact: Path, ensemble: str, model: Path, tree: Callable[[Path, Path], None]) -> None:
    for part in artifact.iterdir():
        if part.name == model.name and part.name != ensemble:
            raise ModelError(
                f"a model of the ensemble's steps is called {part.name}, which is what the ensemble is served as; "
                "rename one of them"
            )
        if part.name != ensemble:
            shutil.rmtree(model.parent / part.name, ignore_errors=True)
            tree(part, model.parent / part.name)


def _copy_tree(
    source: Path,
    target: Path,
    left_out: Collection[str] = (),
    *,
    with_code: bool,
    copy: Callable[[str, str], object],
) -> None:
    """Copy a folder without entries named `left_out` at any depth, and without code where it is not allowed."""

    def ignored(folder: str, names: Sequence[str]) -> set[str]:
        paths = [Path(folder, name) for name in names]
        code = [] if with_code else [path.name for path in paths if not path.is_dir() and is_code_file(path)]
        return {*code, *(name for name in names if name in left_out)}

    shutil.copytree(source, target, ignore=ignored, copy_function=copy)


def _configured(file: Path, name: str, fields: dict[str, Any]) -> Any:
    config = text.read(file, name)
    for field in fields:
        if field in config.DESCRIPTOR.fields_by_name:
            config.ClearField(field)
    try:
        json_format.ParseDict(fields, config)
    except json_format.ParseError as error:
        raise ModelError(f"model '{name}': the given configuration cannot be used: {error}") from error
    config.name = name
    return config
