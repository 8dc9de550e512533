"""The model repository on disk, as Triton lays it out: <model>/config.pbtxt and <model>/<version>/model.onnx."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_runtime.errors import ModelError

CONFIG_FILENAME = "config.pbtxt"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model's folder and the versions found in it, ascending."""

    name: str
    path: Path
    versions: tuple[int, ...]


def scan(roots: Sequence[Path]) -> list[ModelFolder]:
    """Return the models of the repositories by name; raises ModelError for a missing root or a name found twice."""
    folders: dict[str, ModelFolder] = {}
    for root in roots:
        if not root.is_dir():
            raise ModelError(f"--model-repository {root}: no such folder")
        for path in sorted(root.iterdir()):
            if not path.is_dir() or path.name.startswith("."):
                continue
            if path.name in folders:
                raise ModelError(f"model '{path.name}' is in two repositories: {folders[path.name].path} and {path}")
            folders[path.name] = model_folder(path)
    return list(folders.values())


def model_folder(path: Path) -> ModelFolder:
    """Return a model's folder with its versions: the folders named by a number without leading zeros."""
    names = [child.name for child in path.iterdir() if child.is_dir()] if path.is_dir() else []
    versions = sorted(int(name) for name in names if name.isascii() and name.isdigit() and not name.startswith("0"))
    return ModelFolder(path.name, path, tuple(versions))


def chosen_versions(available: Sequence[int], policy: Any, model: str) -> tuple[int, ...]:
    """Return the versions to serve, ascending (Triton: model configuration, version policy).

    Raises ModelError when the policy leaves none, or names one that is not there.
    """
    choice = policy.WhichOneof("policy_choice") or "latest"
    if choice == "all":
        chosen = tuple(available)
    elif choice == "specific":
        wanted = sorted(set(policy.specific.versions))
        missing = [version for version in wanted if version not in available]
        if missing:
            raise ModelError(f"model '{model}': version_policy asks for version {missing[0]}, found {list(available)}")
        chosen = tuple(wanted)
    else:
        chosen = tuple(available[-(policy.latest.num_versions or 1) :])
    if not chosen:
        raise ModelError(f"model '{model}' has no version to serve: no folder named by a number under its folder")
    return chosen
