"""A stored artifact as a stream of bytes: its one file as it is, or all as a tar archive. Called by the registry.

The same artifact always gives the same bytes: paths in order, no times, no owners.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.errors import Conflict

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ArtifactStream:
    """Bytes to send; `suffix` says what they are, such as `.onnx` or `.tar`."""

    suffix: str
    size_bytes: int
    pieces: Iterator[bytes]


def open_stream(folder: Path) -> ArtifactStream:
    """Return the artifact in `folder`; no file is opened before its bytes are asked for. Raises Conflict."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not paths:
        raise Conflict(f"the model files are not at {folder}; push the model again")
    sizes = {path: path.stat().st_size for path in paths}
    if len(paths) == 1 and paths[0].parent == folder:
        return ArtifactStream(paths[0].suffix, sizes[paths[0]], _pieces_of(paths[0], sizes[paths[0]]))
    headers = {path: _header(path.relative_to(folder).as_posix(), size) for path, size in sizes.items()}
    total = sum(len(headers[path]) + size + _padding(size) for path, size in sizes.items()) + 2 * tarfile.BLOCKSIZE
    return ArtifactStream(".tar", total, _tar(headers, sizes))


def _tar(headers: dict[Path, bytes], sizes: dict[Path, int]) -> Iterator[bytes]:
    for path, size in sizes.items():
        yield headers[path]
        yield from _pieces_of(path, size)
        if padding := _padding(size):
            yield bytes(padding)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE


def _pieces_of(path: Path, size: int) -> Iterator[bytes]:
    left = size
    with path.open("rb") as file:
        while left:
            piece = file.read(min(_CHUNK_BYTES, left))
            if not piece:
                raise OSError(f"{path} ended {left} bytes before its size")
            left -= len(piece)
            yield piece
