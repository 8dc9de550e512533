"""Copies of artifacts in S3 and Google Cloud Storage, by digest: `<bucket>/<digest hex>/<path of a file>`.

Pods read them without the control plane, and check the digest: a copy that is incomplete or was changed is not served.
Credentials and endpoints are those of the environment, as for imports.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from common.errors import FairleadError, InvalidInput, NotFound, Unavailable
from integrations.sources.buckets import check_installed
from serving_runtime.shared.object_storage import Failure, failure_of, file_system

T = TypeVar("T")


def copy_to(place: str, folder: Path) -> int:
    """Upload the files of a folder that a place lacks, or has with another size; returns how many.

    Args:
        place: s3:// or gs:// address of the copy.

    Raises:
        NotFound: there is no such bucket, or the folder is gone.
        InvalidInput: a package or credentials are missing, or the credentials do not suffice.
        Unavailable: the store did not answer as it should.
    """
    scheme, _, path = place.rstrip("/").partition("://")
    check_installed(scheme)
    files = {each.relative_to(folder).as_posix(): each for each in sorted(folder.rglob("*")) if each.is_file()}
    if not files:
        raise NotFound(f"there are no files in {folder}; push the model version again")
    system = _asked(place, lambda: file_system(scheme))
    nothing: dict[str, Any] = {}
    found = _asked(place, lambda: system.find(path, detail=True), none_yet=nothing)
    there = {name.removeprefix(f"{path}/"): info["size"] for name, info in found.items()}
    missing = [name for name, file in files.items() if there.get(name) != file.stat().st_size]
    for name in missing:
        _asked(place, lambda: system.put_file(str(files[name]), f"{path}/{name}"))  # noqa: B023 - called at once
    return len(missing)


def _asked(place: str, ask: Callable[[], T], none_yet: T | None = None) -> T:
    """Return the library's result, `none_yet` where nothing is there; raise its errors as ours."""
    try:
        return ask()
    except Exception as error:
        failure = failure_of(error)
        if failure is Failure.MISSING and none_yet is not None:
            return none_yet
        raise _translated(place, failure, error) from error


def _translated(place: str, failure: Failure, error: Exception) -> FairleadError:
    match failure:
        case Failure.MISSING:
            return NotFound(f"{place} cannot be written: there is no such bucket; make it, or name another")
        case Failure.FORBIDDEN:
            return InvalidInput(
                f"{place} cannot be written: the workers' credentials may not list or write it: {error}"
            )
        case Failure.NO_CREDENTIALS:
            return InvalidInput(f"{place} cannot be written: the workers have no credentials in their environment")
    return Unavailable(f"{place} cannot be written: {error or type(error).__name__}")
