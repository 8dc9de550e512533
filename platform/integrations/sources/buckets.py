"""Object storage source: the objects of S3 and Google Cloud Storage as files to import.

Credentials and endpoints are those of the environment, as docs/how-to/import-models.md says.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from common.errors import FairleadError, InvalidInput, NotFound, TooLarge, Unavailable
from common.uris import Address
from integrations.sources.content import Content, SourceFile
from serving_runtime.shared.object_storage import SCHEMES, Failure, failure_of, file_system, missing_package

_BLOCK_BYTES = 8 << 20
_IDENTITY = ("ETag", "etag", "generation", "size")
_MAX_DEPTH = 9


def check_installed(scheme: str) -> None:
    """Raise InvalidInput where the scheme needs a package that is not installed."""
    if scheme in SCHEMES and (package := missing_package(scheme)):
        raise InvalidInput(
            f"{scheme}:// needs the package {package}, which is not installed; install it with Fairlead's extra "
            f"{scheme!r}: pip install 'fairlead[{scheme}]'",
            field="uri",
        )


def files_at(address: Address, *, is_folder: bool, max_files: int) -> list[SourceFile]:
    """Return the object at the address, or those below it.

    Raises:
        NotFound, InvalidInput: nothing is there, or the credentials may not read it.
        TooLarge: there are more objects than allowed.
        Unavailable: the store did not answer as it should.
    """
    check_installed(address.scheme)
    system = file_system(address.scheme)
    place = f"{address.host}/{address.path}"
    if not is_folder:
        found = _asked(address, lambda: system.info(place))
        if found["type"] != "file":
            raise InvalidInput(f"{address.shown} is a folder; write it with a slash at its end")
        return [_file(system, address, found, "")]
    files: list[SourceFile] = _asked(address, lambda: _below(system, address, place, max_files))
    return files


def _below(system: Any, address: Address, place: str, max_files: int) -> list[SourceFile]:
    files: list[SourceFile] = []
    for folder, _, found in system.walk(place, maxdepth=_MAX_DEPTH, detail=True, on_error="raise"):
        for name, info in sorted(found.items()):
            if not name or info["name"].endswith("/"):
                continue  # the placeholder of consoles for an empty folder
            if len(files) == max_files:
                raise TooLarge(f"{address.shown} has more than the {max_files} files that are allowed")
            files.append(_file(system, address, info, f"{folder}/{name}".removeprefix(f"{place}/")))
    if not files:
        raise NotFound(f"there is nothing below {address.shown}/")
    return files


def _file(system: Any, address: Address, info: dict[str, Any], path: str) -> SourceFile:
    return SourceFile(path, info["size"], lambda: _opened(system, address, info))


@contextmanager
def _opened(system: Any, address: Address, info: dict[str, Any]) -> Iterator[Content]:
    options = {"block_size": _BLOCK_BYTES, "cache_type": "readahead"}
    file = _asked(address, lambda: system.open(info["name"], "rb", **options))
    try:
        yield _Object(system, address, info, file)
    finally:
        file.close()


@dataclass
class _Object:
    system: Any
    address: Address
    info: dict[str, Any]
    file: Any

    @property
    def size_bytes(self) -> int | None:
        size: int = self.info["size"]
        return size

    def read(self, size: int = -1, /) -> bytes:
        piece: bytes = _asked(self.address, lambda: self.file.read(size))
        if not piece:
            # It is read by ranges, so an object replaced meanwhile would come out half old and half new.
            now = _asked(self.address, lambda: self.system.info(self.info["name"], refresh=True))
            if any(now.get(key) != self.info.get(key) for key in _IDENTITY if key in now and key in self.info):
                raise Unavailable(f"{self.address.scheme}://{self.info['name']} was replaced while it was read")
        return piece


def _asked(address: Address, ask: Callable[[], Any]) -> Any:
    """Return the library's result, with its errors translated to ours."""
    try:
        return ask()
    except (InvalidInput, NotFound, TooLarge, Unavailable):
        raise
    except Exception as error:
        raise _failed(address.shown, error) from error


def _failed(what: str, error: Exception) -> FairleadError:
    match failure_of(error):
        case Failure.MISSING:
            return NotFound(f"there is nothing at {what}, or no such bucket")
        case Failure.FORBIDDEN:
            return InvalidInput(f"{what} may not be read with the worker's credentials: {error}")
        case Failure.NO_CREDENTIALS:
            return InvalidInput(f"{what} cannot be read without credentials in the worker's environment: {error}")
    return Unavailable(f"{what} cannot be read: {error or type(error).__name__}")
