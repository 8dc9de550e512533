"""Archives that a pod unpacks: their expansion is bounded before the digest is known."""

import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from serving_runtime.artifacts.unpack import unpack
from serving_runtime.common.errors import ModelError

FAR = {f"1/part{number}.onnx": bytes(17 << 20) for number in range(4)}


def tar(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


PACKED: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "m.zip": zipped,
    "m.tar.gz": lambda files: gzip.compress(tar(files)),
    "m.tar": lambda files: lzma.compress(tar(files), preset=0),
}


@pytest.mark.parametrize("filename", PACKED)
def test_what_expands_far_is_refused_and_writes_little_more(tmp_path: Path, filename: str) -> None:
    archive, folder = tmp_path / filename, tmp_path / "out"
    archive.write_bytes(PACKED[filename](FAR))
    with pytest.raises(ModelError, match="unpacks to more than 67108864, over 100 times as much"):
        unpack(archive, filename, "", folder)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= (65 << 20)


@pytest.mark.parametrize("filename", PACKED)
def test_what_expands_as_models_do_is_unpacked(tmp_path: Path, filename: str) -> None:
    archive, folder = tmp_path / filename, tmp_path / "out"
    archive.write_bytes(PACKED[filename]({"1/model.onnx": bytes(1 << 20)}))
    assert set(unpack(archive, filename, "", folder)) == {"1/model.onnx"}
