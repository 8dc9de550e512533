"""Upload preflight: whether files could become a version, checked by name and size before a client sends them.

Errors that need the bytes (a damaged archive, a model that no backend opens) are found after the upload.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import InvalidInput, TooLarge
from integrations.artifacts.archives import check_paths
from integrations.artifacts.store import check_filename


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file to send; the path of one in a folder begins with that folder."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Offer:
    """How to send the files.

    Attributes:
        filename: name of the body.
        is_archive: whether the body is a tar archive of the files; else it is the single file.
    """

    filename: str
    is_archive: bool


def offer(files: Sequence[OfferedFile], *, model: str, max_bytes: int, max_files: int) -> Offer:
    """Return how to send the files as a version of `model`.

    Raises:
        InvalidInput: by their names, they are no model.
        TooLarge: more files or bytes than allowed.
    """
    if not files:
        raise InvalidInput(
            "there are no files; choose a model's file, such as model.onnx, or its folder", field="files"
        )
    if len(files) > max_files:
        raise TooLarge(f"there are {len(files)} files; at most {max_files} are taken as one version")
    size_bytes = sum(file.size_bytes for file in files)
    if size_bytes > max_bytes:
        raise TooLarge(f"the model has {size_bytes} bytes; at most {max_bytes} are taken (FAIRLEAD_MAX_ARTIFACT_BYTES)")
    if size_bytes == 0:
        raise InvalidInput(
            "the files are empty; choose a model's file, such as model.onnx, or its folder", field="files"
        )
    if len(files) == 1 and "/" not in files[0].path:
        check_filename(files[0].path)
        return Offer(files[0].path, is_archive=False)
    check_paths(file.path for file in files)
    return Offer(f"{model}.tar", is_archive=True)
