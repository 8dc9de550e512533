"""Object storage: objects in S3 and Google Cloud Storage as files of an artifact; credentials of the environment."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from serving_runtime.artifacts.remotes import InterruptedTransferError, Opened
from serving_runtime.artifacts.unpack import is_known
from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog.bucket_repository import opened
from serving_runtime.engine.catalog.repository_location import Bucket, parse
from serving_runtime.shared.object_storage import Failure, failure_of

_NO_NAMES = frozenset(("", ".", ".."))
_CHUNK_BYTES = 8 << 20
_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """One object."""

    system: Any
    name: str
    scheme: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"

    @contextmanager
    def open(self, first: int) -> Iterator[Opened]:
        """Open it at a byte offset."""
        try:
            size = int(self.system.info(self.name)["size"])
            if first > size:
                first = 0
            with self.system.open(self.name, "rb", block_size=_BLOCK_BYTES, cache_type="readahead") as file:
                file.seek(first)
                yield Opened(first, size, self.name.rpartition("/")[2], iter(lambda: file.read(_CHUNK_BYTES), b""))
        except (InterruptedTransferError, ModelError):
            raise
        except Exception as error:
            raise _translated(str(self), error) from error


def objects_at(uri: str) -> list[ObjectFile]:
    """Return the object at an s3:// or gs:// address, or those below it where its name is not that of a model file.

    Raises:
        ModelError: nothing exists there, it may not be read, or the library for it is not installed.
        InterruptedTransferError: the store does not answer.
    """
    bucket = parse(uri)
    if not isinstance(bucket, Bucket):
        raise ModelError(f"{uri} is no address of a bucket")
    system = opened(bucket, f"--origin {bucket}")
    try:
        if is_known(bucket.path):
            return [ObjectFile(system, str(system.info(bucket.path)["name"]), bucket.scheme)]
        found = [name for name in system.find(bucket.path) if not name.endswith("/")]
    except Exception as error:
        raise _translated(str(bucket), error) from error
    if not found:
        raise ModelError(f"there is nothing below {bucket}/")
    files = [ObjectFile(system, name, bucket.scheme, name.removeprefix(f"{bucket.path}/")) for name in sorted(found)]
    for file in files:
        if not _NO_NAMES.isdisjoint(file.path.split("/")):
            raise ModelError(f"{file} has a name that is no path below {bucket}/")
    return files


def _translated(what: str, error: Exception) -> Exception:
    """Return our error for one of the library."""
    match failure_of(error):
        case Failure.MISSING:
            return ModelError(f"there is nothing at {what}, or no such bucket")
        case Failure.FORBIDDEN:
            return ModelError(f"{what} may not be read with the pod's credentials: {error}")
        case Failure.NO_CREDENTIALS:
            return ModelError(f"{what} cannot be read without credentials in the pod's environment: {error}")
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return error  # a failure of the local disk
    return InterruptedTransferError(f"{what} cannot be read: {error or type(error).__name__}")
