"""Cloud storage repositories: models in S3 and Google Cloud Storage.

    <cache>/<digest of the repository>/<model>/<digest of its marks>/config.pbtxt, 1/model.onnx, ...

Files that all versions share are fetched to read the config, a version's only before it is opened; each is checked
and renamed into place.
"""

import base64
import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog.repository import Marks, is_model_name, is_version_path
from serving_runtime.engine.catalog.repository_location import Bucket
from serving_runtime.shared.object_storage import Failure, failure_of, file_system, missing_package

T = TypeVar("T")

_KEPT = 2
"""Copies of a model in the cache: the served one, and its replacement."""


class BucketRoot:
    """A repository in an object store, with local copies of the loaded models.

    Args:
        cache: a folder that only this server uses.
    """

    def __init__(self, bucket: Bucket, cache: Path) -> None:
        self._bucket = bucket
        self._system = opened(bucket, f"--model-repository {bucket}")
        self._cache = cache / _digest([str(bucket)])

    @property
    def name(self) -> str:
        return self._bucket.name

    def scan(self) -> dict[str, Marks]:
        models: dict[str, dict[str, str]] = {}
        for path, info in self._list("").items():
            model, _, inside = path.partition("/")
            models.setdefault(model, {})[inside] = _mark(info)
        return dict(models)

    def find(self, model: str) -> Marks | None:
        marks = {path: _mark(info) for path, info in self._list(model).items()}
        return marks or None

    def fetch(self, model: str, marks: Marks) -> Path:
        """Return the local folder for the model's files, with those that all versions share."""
        folder = self._cache / model / _digest(f"{path} {marks[path]}" for path in sorted(marks))
        if not folder.is_dir():
            partial = self._begun(folder)
            self._get(model, partial, [path for path in marks if not is_version_path(path)], marks)
            partial.replace(folder)
        folder.touch()
        self._forget_old(folder)
        return folder

    def bring(self, folder: Path, model: str, marks: Marks, version: int) -> None:
        """Fetch a version's files into the folder; raises ModelError."""
        place = folder / str(version)
        if place.is_dir():
            return
        partial = self._begun(place)
        wanted = [path for path in marks if path.startswith(f"{version}/")]
        self._get(model, partial, wanted, marks)
        (partial / str(version)).replace(place)
        shutil.rmtree(partial)

    def _list(self, model: str) -> dict[str, dict[str, Any]]:
        """Return the store's info on each object below a model, or below all of them, by its path."""
        place = f"{self._bucket.path}/{model}" if model else self._bucket.path
        found = self._asked(lambda: self._system.find(place, detail=True))
        objects = {}
        for name, info in found.items():
            path = name.removeprefix(f"{place}/")
            parts = path.split("/")
            if all(map(is_model_name, parts)) and (model or len(parts) > 1):
                objects[path] = info
        return objects

    def _get(self, model: str, folder: Path, paths: Collection[str], marks: Marks) -> None:
        """Fetch objects into a folder and check that their marks match."""
        for path in paths:
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            self._asked(lambda: self._system.get_file(f"{self._bucket.path}/{model}/{path}", str(file)))  # noqa: B023
        now = self._list(model)
        for path in paths:
            info = now.get(path)
            if info is None or _mark(info) != marks[path]:
                raise ModelError(
                    f"{self._bucket}/{model}/{path} was changed while it was fetched; load the model again"
                )
            _check(folder / path, info, f"{self._bucket}/{model}/{path}")

    @staticmethod
    def _begun(target: Path) -> Path:
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        return partial

    @staticmethod
    def _forget_old(folder: Path) -> None:
        copies = sorted(folder.parent.iterdir(), key=lambda copy: copy.stat().st_mtime_ns, reverse=True)
        for copy in copies[_KEPT:]:
            shutil.rmtree(copy, ignore_errors=True)

    def _asked(self, ask: Callable[[], T]) -> T:
        """Return the library's result; raise its errors as ours."""
        try:
            return ask()
        except Exception as error:
            why = {
                Failure.MISSING: f": there is no such bucket or object: {error}",
                Failure.FORBIDDEN: f" may not be read: {error}",
                Failure.NO_CREDENTIALS: f": there are no credentials in the environment: {error}",
                Failure.UNAVAILABLE: f" cannot be read: {error or type(error).__name__}",
            }[failure_of(error)]
            raise ModelError(f"--model-repository {self._bucket}{why}") from error


def opened(bucket: Bucket, asked: str) -> Any:
    """Return fsspec's file system for a bucket.

    Args:
        asked: the words of the command line that need it.

    Raises:
        ModelError: the extra with the library is not installed.
    """
    if package := missing_package(bucket.scheme):
        raise ModelError(f"{asked} needs the package {package}: pip install 'fairlead[{bucket.scheme}]'")
    return file_system(bucket.scheme, bucket.endpoint)


def _mark(info: dict[str, Any]) -> str:
    """Return size and content identity of an object."""
    identity = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("generation") or ""
    return f"{info['size']}-{str(identity).strip(chr(34))}"


def _check(file: Path, info: dict[str, Any], where: str) -> None:
    """Raise ModelError unless a file has the store's size and, where known, its MD5."""
    size = file.stat().st_size
    if size != info["size"]:
        raise ModelError(f"{where} came with {size} bytes, the store says {info['size']}")
    etag = str(info.get("ETag", "")).strip('"')
    expected = etag if len(etag) == 32 and "-" not in etag else ""
    if info.get("md5Hash"):
        expected = base64.b64decode(info["md5Hash"]).hex()
    encrypted = info.get("ServerSideEncryption") or info.get("SSEKMSKeyId")
    if expected and not encrypted and _md5(file) != expected:
        raise ModelError(f"{where} came with other content than the store says (MD5)")


def _md5(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24]
