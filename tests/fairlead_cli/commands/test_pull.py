"""`fairlead models pull`."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]
VERSION, ARTIFACT = "GET /models/digits/versions/2", "GET /models/digits/versions/2/artifact"


def version(files: dict[str, bytes]) -> dict[str, Any]:
    lines = "".join(f"{name}\0{hashlib.sha256(files[name]).hexdigest()}\n" for name in sorted(files))
    return {"model": "digits", "number": 2, "digest": "sha256:" + hashlib.sha256(lines.encode()).hexdigest()}


def tar(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def test_a_file_is_put_where_it_was_asked_for(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.on(VERSION, version({"model.onnx": b"some model"}))
    api.on(ARTIFACT, b"some model")
    api.filenames[ARTIFACT] = "digits-2.onnx"
    code, said, complained = fairlead("models", "pull", "digits", "2", "--to", "here")
    assert (code, said, complained) == (0, "digits version 2 is in here: model.onnx\n", "")
    assert (at_home / "here" / "model.onnx").read_bytes() == b"some model"
    assert [path.name for path in (at_home / "here").iterdir()] == ["model.onnx"]


def test_a_folder_is_unpacked_and_an_alias_followed(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    files = {"config.pbtxt": b"", "1/model.onnx": b"some model"}
    api.on("GET /models/digits", {"name": "digits", "aliases": [{"name": "champion", "version": 2}]})
    api.on(VERSION, version(files))
    api.on(ARTIFACT, tar(files))
    api.filenames[ARTIFACT] = "digits-2.tar"
    code, said, _ = fairlead("models", "pull", "digits", "@champion", "--to", "here", "-o", "json")
    assert (code, json.loads(said)["files"]) == (0, ["here/1", "here/config.pbtxt"])
    assert (at_home / "here" / "1" / "model.onnx").read_bytes() == b"some model"


def test_bytes_that_are_not_those_of_the_version_are_not_kept(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.on(VERSION, version({"model.onnx": b"some model"}))
    api.on(ARTIFACT, b"another model")
    code, _, complained = fairlead("models", "pull", "digits", "2", "--to", "here")
    assert code == 1
    assert "pull it again" in complained
    assert list((at_home / "here").iterdir()) == []


def test_an_archive_cannot_reach_out_of_the_folder(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.on(VERSION, version({"x": b""}))
    api.on(ARTIFACT, tar({"../../evil": b""}))
    api.filenames[ARTIFACT] = "digits-2.tar"
    code, _, complained = fairlead("models", "pull", "digits", "2", "--to", "here")
    assert code == 1
    assert "cannot be unpacked" in complained
    assert not list(at_home.rglob("evil"))


def test_a_file_that_is_there_is_not_replaced(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.on(VERSION, version({"model.onnx": b"some model"}))
    api.on(ARTIFACT, b"some model")
    api.filenames[ARTIFACT] = "digits-2.onnx"
    (at_home / "model.onnx").write_bytes(b"mine")
    code, _, complained = fairlead("models", "pull", "digits", "2")
    assert (code, complained) == (1, "model.onnx is there already; give another folder with --to\n")
    assert (at_home / "model.onnx").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("which", "complaint"),
    [
        ("two", "'two' is no version; give its number, or @ALIAS\n"),
        ("@none", "model digits has no alias none; there are: none\n"),
    ],
)
def test_a_version_must_be_named(fairlead: Fairlead, api: Any, which: str, complaint: str) -> None:
    api.on("GET /models/digits", {"name": "digits", "aliases": []})
    assert fairlead("models", "pull", "digits", which)[::2] == (1, complaint)
