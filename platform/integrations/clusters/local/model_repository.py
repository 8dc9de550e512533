"""Model repository layout: turns an artifact into a repository for the runtime. Called by the agent and by jobs.

An artifact is one model file, or one model's folder in Triton's layout (`config.pbtxt`, `1/model.onnx`, labels), or an
ensemble's folder with those of the models of its steps beside it, which keep their names. Its files are linked, not
copied, where the file system allows; code files only where models in Python may run. The served name and version are
the service's, not the artifact's.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from common.errors import Conflict, InvalidInput, NotFound
from integrations.artifacts.store import digest_of_folder, folder_of
from integrations.clusters.base import DesiredRevision
from integrations.clusters.local.files import BadFileError, read_json, write_json
from integrations.clusters.local.model_config import rewrite
from serving_runtime.shared.code_files import is_code_file
from serving_runtime.shared.model_files import ensemble_in

_CONFIG = "config.pbtxt"


def materialise(revision: DesiredRevision, repository: Path, *, with_code: bool = False) -> None:
    """Make `repository` hold exactly the revision's model; earlier content is replaced.

    Raises:
        NotFound: the artifact is gone.
        Conflict: its files do not match the digest.: its URI or its config.pbtxt cannot be understood.
    """
    _check(revision, repository)
    shutil.rmtree(repository, ignore_errors=True)
    artifact = folder_of(revision.artifact_uri)
    lay_out(
        artifact,
        repository / revision.model_name,
        version=revision.model_version,
        config=revision.model_config,
        with_code=with_code,
    )


def _check(revision: DesiredRevision, repository: Path) -> None:
    """Raise what `materialise` raises where the artifact differs from that of the revision."""
    artifact = folder_of(revision.artifact_uri)
    check_artifact(artifact, revision.artifact_digest, _seal_of(repository), revision=revision.name)


def _seal_of(repository: Path) -> Path:
    return repository.with_name(f"{repository.name}.seal")


def lay_out(
    artifact: Path, model: Path, *, version: str, config: Mapping[str, object], with_code: bool = False
) -> None:
    """Make the model folder `model` from `artifact`; its name becomes the model's.

    Args:
        with_code: include files that an interpreter or the loader could run (`is_code_file`).

    Raises:
        InvalidInput: the config.pbtxt cannot be understood, or a model of an ensemble's steps has the name of `model`.
    """
    model.parent.mkdir(parents=True, exist_ok=True)
    ensemble = ensemble_in(path.relative_to(artifact).as_posix() for path in artifact.rglob("*") if path.is_file())
    if ensemble:
        for part in artifact.iterdir():
            if part.name == model.name and part.name != ensemble:
                raise InvalidInput(
                    f"a model of the ensemble's steps is called {part.name}, which is what the ensemble is served as; "
                    "rename one of them"
                )
            if part.name != ensemble:
                _link_tree(part, model.parent / part.name, with_code=with_code)
        artifact = artifact / ensemble
    versions = sorted(
        (path for path in artifact.iterdir() if path.is_dir() and path.name.isdecimal()),
        key=lambda path: int(path.name),
    )
    files = [path for path in artifact.iterdir() if path not in versions and path.name != _CONFIG]
    model.mkdir()
    if versions:
        _link_tree(versions[-1], model / version, with_code=with_code)
    else:
        (model / version).mkdir()
    for path in files:
        _link_tree(path, (model if versions or ensemble else model / version) / path.name, with_code=with_code)
    text = (artifact / _CONFIG).read_text(encoding="utf-8") if (artifact / _CONFIG).exists() else ""
    if text or config:
        (model / _CONFIG).write_text(rewrite(text, name=model.name, fields=config), encoding="utf-8")


def _link_tree(source: Path, target: Path, *, with_code: bool) -> None:
    if source.is_dir():
        target.mkdir(exist_ok=True)
        for path in source.iterdir():
            _link_tree(path, target / path.name, with_code=with_code)
        return
    if not with_code and is_code_file(source):
        return
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)


class Repository:
    """One revision's model repository, made once for all its replicas."""

    def __init__(self, revision: DesiredRevision, folder: Path, *, with_code: bool = False, made: bool = False) -> None:
        """Use `folder`; `made` if replicas of an earlier agent run by it already."""
        self.folder = folder
        self._with_code = with_code
        self._made = made
        self._revision = revision
        self._making: asyncio.Task[None] | None = None

    @property
    def flags(self) -> list[str]:
        """Return the runtime's flags."""
        return [f"--model-repository={self.folder}"]

    @property
    def folders(self) -> list[Path]:
        """Return the folders that the runtime reads."""
        return [self.folder]

    async def prepare(self) -> None:
        """Make the repository unless that was done, else check its artifact; raises what `materialise` raises.

        The work runs in a thread, since files may be large, and goes on when the caller is cancelled.
        """
        if self._making is None or self._making.done():
            is_made = self._made or (self._making is not None and self._making.exception() is None)
            work = _check if is_made else partial(materialise, with_code=self._with_code)
            self._making = asyncio.create_task(asyncio.to_thread(work, self._revision, self.folder))
        await asyncio.shield(self._making)

    async def remove(self) -> None:
        """Remove its files, once no replica runs any more."""
        if self._making is not None:
            await asyncio.wait({self._making})
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        _seal_of(self.folder).unlink(missing_ok=True)


SCHEMA = "fairlead.seal/v1"


def check_artifact(artifact: Path, digest: str, seal: Path, *, revision: str) -> None:
    """Verify that the files of `artifact` match `digest`: hash them all once, and again only where one looks changed.

    Args:
        seal: a small file with the verified digest, and size, time of change and inode of each file at that time. It
            lies beside the model repository, so that it outlives the agent and is removed with the revision.

    Raises:
        NotFound: the artifact is gone.
        Conflict: its files are others.
    """
    if not artifact.is_dir():
        raise NotFound(f"the artifact of revision {revision} is not at {artifact}; push the model version again")
    seen = {"schema": SCHEMA, "digest": digest, "files": _looks(artifact)}
    if _sealed(seal) == seen:
        return
    found = digest_of_folder(artifact)
    if found != digest:
        raise Conflict(
            f"the artifact of revision {revision} at {artifact} was changed on disk: expected {digest}, found {found}; "
            "put its files back, or roll out another version"
        )
    with suppress(OSError):  # without it all is hashed again the next time
        write_json(seal, seen)


def _looks(artifact: Path) -> dict[str, list[int]]:
    """Return size, time of change and inode of each file, which the links that repositories make do not change."""
    stats = {path.relative_to(artifact).as_posix(): path.stat() for path in artifact.rglob("*") if path.is_file()}
    return {name: [found.st_size, found.st_mtime_ns, found.st_ino] for name, found in stats.items()}


def _sealed(seal: Path) -> object:
    try:
        return read_json(seal, SCHEMA)
    except (FileNotFoundError, BadFileError):
        return None
