"""Upload source of `fairlead models push`: a file as it is, or a folder as a tar archive made while it is sent."""

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.errors import CliError

_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes that can be read more than once and are the same each time, unless the files change."""

    filename: str
    size_bytes: int
    pieces: Callable[[], Iterator[bytes]]


def source_of(path: Path) -> Source:
    """Return the source of `path`; raises CliError where it is neither a file nor a folder of plain files."""
    if path.is_file():
        return Source(path.name, path.stat().st_size, lambda: _pieces(path))
    if not path.is_dir():
        raise CliError(f"{path} is no file; give the model's file, such as model.onnx, or its folder")
    sizes: dict[Path, int] = {}
    for entry in sorted(path.rglob("*")):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
            raise CliError(f"{entry} is no plain file; put the file itself there, links are not pushed")
        if entry.is_file():
            sizes[entry] = entry.stat().st_size
    if not sizes:
        raise CliError(f"{path} is empty; a model's folder has config.pbtxt and 1/model.onnx")
    size = sum(len(_header(path, file, length)) + length + _padding(length) for file, length in sizes.items())
    return Source(f"{path.resolve().name}.tar", size + 2 * tarfile.BLOCKSIZE, lambda: _tar(path, sizes))


def _tar(folder: Path, sizes: dict[Path, int]) -> Iterator[bytes]:
    for file, size in sizes.items():
        yield _header(folder, file, size)
        sent = 0
        for piece in _pieces(file):
            sent += len(piece)
            yield piece
        if sent != size:
            raise CliError(f"{file} changed while it was read; push again when it is finished")
        yield bytes(_padding(size))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(folder: Path, file: Path, size: int) -> bytes:
    member = tarfile.TarInfo(file.relative_to(folder).as_posix())
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(_CHUNK_BYTES):
            yield piece
