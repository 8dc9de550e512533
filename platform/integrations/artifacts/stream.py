"""Artifact stream: its one file as it is, or all files as a tar archive. Called by the registry.

The same artifact always yields the same bytes: paths in order, no times, no owners. So an interrupted stream can be
resumed where it ended.
"""

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import Conflict

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of the stream: bytes, or `size_bytes` of a file."""

    size_bytes: int
    source: bytes | Path

    def pieces(self, first: int) -> Iterator[bytes]:
        """Yield the part from its byte `first` on."""
        if isinstance(self.source, bytes):
            yield self.source[first:]
            return
        left = self.size_bytes - first
        with self.source.open("rb") as file:
            file.seek(first)
            while left:
                piece = file.read(min(_CHUNK_BYTES, left))
                if not piece:
                    raise OSError(f"{self.source} ended {left} bytes before its size")
                left -= len(piece)
                yield piece


@dataclass(frozen=True, slots=True)
class ArtifactStream:
    """Bytes to send; `suffix` says what they are, such as `.onnx` or `.tar`."""

    suffix: str
    parts: Sequence[_Part]

    @property
    def size_bytes(self) -> int:
        """Return how many bytes there are in all."""
        return sum(part.size_bytes for part in self.parts)

    def pieces(self, first: int = 0) -> Iterator[bytes]:
        """Yield the bytes from `first` on; each file is opened only when its bytes are due."""
        for part in self.parts:
            if first < part.size_bytes:
                yield from part.pieces(first)
            first = max(0, first - part.size_bytes)


def open_stream(folder: Path, *, keeps_names: bool = False) -> ArtifactStream:
    """Return the artifact in `folder`.

    Args:
        keeps_names: a single file comes as it is only where it is called `model` and its suffix, so that its name is
            known too.

    Raises:
        Conflict: nothing is there.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not paths:
        raise Conflict(f"the model files are not at {folder}; push the model again")
    if len(paths) == 1 and paths[0].parent == folder and (paths[0].stem == "model" or not keeps_names):
        return ArtifactStream(paths[0].suffix, [_Part(paths[0].stat().st_size, paths[0])])
    return ArtifactStream(".tar", [*_members(folder, paths), _zeros(2 * tarfile.BLOCKSIZE)])


def _members(folder: Path, paths: Sequence[Path]) -> Iterator[_Part]:
    for path in paths:
        member = tarfile.TarInfo(path.relative_to(folder).as_posix())
        member.size = path.stat().st_size
        header = member.tobuf(tarfile.PAX_FORMAT)
        yield from (_Part(len(header), header), _Part(member.size, path), _zeros(-member.size % tarfile.BLOCKSIZE))


def _zeros(size_bytes: int) -> _Part:
    return _Part(size_bytes, bytes(size_bytes))
