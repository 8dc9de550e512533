"""Model repositories in Triton's layout: <model>/config.pbtxt and <model>/<version>/model.onnx.

A root lists its models with a mark per file that changes with the file's content, and fetches a model's files to this
machine. Everything here may block on disks or networks: the engine calls it in threads.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeAlias

from serving_runtime.common.errors import ModelError, NotFound

CONFIG_FILENAME = "config.pbtxt"

Marks: TypeAlias = Mapping[str, str]
"""Files by their path in the model's folder, each with its size, a dash, and what changes with its content; folders by
their path with a slash at the end, without a mark."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model's folder on this machine.

    Attributes:
        versions: ascending.
        marks: of its files.
        root: the repository it belongs to; None for a folder from elsewhere.
        temporary: made for one load, and removed with the model that was loaded from it.
        on_left: called once the model that was loaded from it is unloaded; None where nothing waits for that.
        checked: whether these files passed a check in a sandbox; concerns pools only.
        code: whether code of its own may run as it is loaded, for as long as it wants; concerns pools only.
    """

    name: str
    path: Path
    versions: tuple[int, ...]
    marks: Marks = field(default_factory=dict)
    root: "Root | None" = None
    temporary: bool = False
    on_left: Callable[[], None] | None = None
    checked: bool = False
    code: bool = False

    def bring(self, version: int) -> None:
        """Fetch a version's files into the folder unless they are there; raises ModelError."""
        if self.root is not None:
            self.root.bring(self.path, self.name, self.marks, version)


class Root(Protocol):
    """One --model-repository."""

    @property
    def name(self) -> str:
        """Return the repository's name in paths of the repository extension."""
        ...

    def scan(self) -> dict[str, Marks]:
        """Return the marks of all models; raises ModelError where the repository cannot be read."""
        ...

    def find(self, model: str) -> Marks | None:
        """Return the marks of one model, None where the repository lacks it."""
        ...

    def fetch(self, model: str, marks: Marks) -> Path:
        """Return a local folder with the files that all versions share; raises ModelError."""
        ...

    def bring(self, folder: Path, model: str, marks: Marks, version: int) -> None:
        """Fetch a version's files into the folder too; raises ModelError."""
        ...


class LocalRoot:
    """A folder of models on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return self._path.resolve().name

    def scan(self) -> dict[str, Marks]:
        if not self._path.is_dir():
            raise ModelError(f"--model-repository {self._path}: no such folder")
        try:
            names = sorted(child.name for child in self._path.iterdir() if child.is_dir())
        except OSError as error:
            raise ModelError(f"--model-repository {self._path} cannot be read: {error.strerror}") from error
        return {name: local_marks(self._path / name) for name in names if is_model_name(name)}

    def find(self, model: str) -> Marks | None:
        path = self._path / model
        return local_marks(path) if path.is_dir() else None

    def fetch(self, model: str, marks: Marks) -> Path:  # noqa: ARG002 - they are here already
        return self._path / model

    def bring(self, folder: Path, model: str, marks: Marks, version: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A model in one of the repositories.

    Attributes:
        serves_as: the name in its answers and messages; empty for its own.
        on_left, checked, code: see ModelFolder.
    """

    name: str
    root: Root
    marks: Marks
    serves_as: str = ""
    on_left: Callable[[], None] | None = None
    checked: bool = False
    code: bool = False

    def fetch(self) -> ModelFolder:
        """Return the model's folder on this machine; raises ModelError."""
        path = self.root.fetch(self.name, self.marks)
        name = self.serves_as or self.name
        return ModelFolder(
            name,
            path,
            versions_in(self.marks),
            self.marks,
            root=self.root,
            on_left=self.on_left,
            checked=self.checked,
            code=self.code,
        )


class Repository:
    """All roots together. A model in two roots is ambiguous and in none."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = roots

    def scan(self) -> dict[str, Found | ModelError]:
        """Return every model by name; raises ModelError for a root that cannot be read."""
        found: dict[str, Found | ModelError] = {}
        for root in self._roots:
            for name, marks in root.scan().items():
                other = found.get(name)
                found[name] = Found(name, root, marks) if other is None else _twice(name)
        return dict(sorted(found.items()))

    def find(self, name: str) -> Found:
        """Return one model; raises NotFound, or ModelError when it is in two repositories."""
        places = []
        if is_model_name(name):
            places = [(root, marks) for root in self._roots if (marks := root.find(name)) is not None]
        if not places:
            raise NotFound(f"failed to load '{name}', there is no such model in the repositories")
        if len(places) > 1:
            raise _twice(name)
        root, marks = places[0]
        return Found(name, root, marks)

    def names(self) -> set[str]:
        """Return the names of the repositories."""
        return {root.name for root in self._roots}


def _twice(name: str) -> ModelError:
    return ModelError(f"model '{name}' is in two repositories; rename or remove one of them")


def is_model_name(name: str) -> bool:
    """Return whether a folder of this name is a model: hidden ones are not, and a name must not lead elsewhere."""
    return bool(name) and not name.startswith(".") and not set(name) & {"/", "\\", "\0"}


def local_marks(path: Path) -> dict[str, str]:
    """Return the marks of a folder's files: size and modification time."""
    marks = {}
    for folder, folders, files in os.walk(path, followlinks=True):
        inside = Path(folder).relative_to(path)
        for name in folders:
            marks[f"{(inside / name).as_posix()}/"] = ""
        for name in files:
            try:
                stat = (Path(folder) / name).stat()
            except OSError:  # removed since it was listed, or a dangling link
                continue
            marks[(inside / name).as_posix()] = f"{stat.st_size}-{stat.st_mtime_ns}"
    return marks


def version_bytes(marks: Marks, version: int) -> int:
    """Return the size of a version's files."""
    files = [mark for path, mark in marks.items() if path.startswith(f"{version}/") and mark]
    return sum(int(mark.partition("-")[0]) for mark in files)


def model_folder(path: Path) -> ModelFolder:
    """Return the model in a local folder."""
    marks = local_marks(path)
    return ModelFolder(path.name, path, versions_in(marks), marks)


def versions_in(marks: Iterable[str]) -> tuple[int, ...]:
    """Return the versions among a model's files, ascending: folders named by a number without leading zeros."""
    return tuple(sorted({int(path.partition("/")[0]) for path in marks if is_version_path(path)}))


def marks_by_version(marks: Marks) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """Return the marks that all versions share, without the config's, and those of each version.

    The config is left out because it is compared by content (see reuse.py).
    """
    common: dict[str, str] = {}
    versions: dict[int, dict[str, str]] = {}
    for path, mark in marks.items():
        if is_version_path(path):
            versions.setdefault(int(path.partition("/")[0]), {})[path] = mark
        elif path != CONFIG_FILENAME and PurePosixPath(path).parts[0] != "configs":
            common[path] = mark
    return common, versions


def chosen_versions(available: Sequence[int], policy: Any, model: str) -> tuple[int, ...]:
    """Return the versions to serve, ascending (Triton: model configuration, version policy).

    Raises ModelError when the policy leaves none, or names one that is absent.
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


def is_version_path(path: str) -> bool:
    """Return whether a path in a model's folder leads into a version's folder."""
    name, slash, _ = path.partition("/")
    return bool(slash) and name.isascii() and name.isdigit() and not name.startswith("0") and len(name) <= 18
