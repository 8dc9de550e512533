"""Models come from where they were imported from, over real sockets: S3, Google Cloud Storage, the web; and where that
fails, from the registry.
"""

import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

from serving_runtime.__main__ import main
from tests.integrations._support.buckets import Bucket
from tests.servers.broken_web import serving
from tests.serving_runtime._support.digests import digest_for, left

FILES = {"config.pbtxt": b"max_batch_size: 4", "1/model.onnx": b"model" * 100_000}
ONE = {"model.onnx": b"model" * 100_000}


def prepare(place: Path, files: dict[str, bytes], *more: str) -> int:
    named = [f"--digest={digest_for(files)}", "--name=digits", "--version=3", "--fetch-tries=1"]
    return main(["prepare", *named, f"--model-repository={place}", *more])


def packed() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in FILES.items():
            member = tarfile.TarInfo(f"digits/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_of_a_bucket(bucket: Bucket, tmp_path: Path, end: str) -> None:
    for name, content in FILES.items():
        bucket.put(f"digits/{name}", content)
    bucket.put("digits-of-others/1/model.onnx", b"other")
    assert prepare(tmp_path, FILES, f"--origin={bucket.scheme}://models/digits{end}") == 0
    assert left(tmp_path) == ["digits/3/model.onnx", "digits/config.pbtxt"]


@pytest.mark.parametrize(
    ("key", "content", "files"),
    [
        pytest.param("digits.onnx", ONE["model.onnx"], ONE, id="one file"),
        pytest.param("digits.tar.gz", packed(), FILES, id="an archive"),
    ],
)
def test_an_object(bucket: Bucket, tmp_path: Path, key: str, content: bytes, files: dict[str, bytes]) -> None:
    bucket.put(key, content)
    assert prepare(tmp_path, files, f"--origin={bucket.scheme}://models/{key}") == 0
    assert "digits/3/model.onnx" in left(tmp_path)


def test_what_is_there_already_of_an_object_is_not_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("digits.onnx", ONE["model.onnx"])
    part = tmp_path / ".incoming" / ".incoming" / digest_for(ONE)[7:] / "parts" / "artifact"
    part.parent.mkdir(parents=True)
    part.write_bytes(ONE["model.onnx"][:400_000])
    assert prepare(tmp_path, ONE, f"--origin={bucket.scheme}://models/digits.onnx") == 0
    assert (tmp_path / "digits" / "3" / "model.onnx").read_bytes() == ONE["model.onnx"]


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        pytest.param("models/none.onnx", "there is nothing at", id="no object"),
        pytest.param("models/none/", "there is nothing", id="no folder"),
        pytest.param("nobody/x.onnx", "there is nothing at", id="no bucket"),
    ],
)
def test_what_is_not_there_is_told(
    bucket: Bucket, tmp_path: Path, address: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put("something", b"x")
    assert prepare(tmp_path, ONE, f"--origin={bucket.scheme}://{address}") == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_missing_extra_is_named(
    scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    missing = {"s3fs", "gcsfs"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else real(name))
    assert prepare(tmp_path, ONE, f"--origin={scheme}://models/digits.onnx") == 2
    assert f"pip install 'fairlead[{scheme}]'" in capsys.readouterr().err


def test_a_file_of_the_web(tmp_path: Path) -> None:
    with serving(packed(), "told.otherwise") as served:
        assert prepare(tmp_path, FILES, f"--origin={served.url}/digits.tar.gz") == 0
    assert left(tmp_path) == ["digits/3/model.onnx", "digits/config.pbtxt"]


@pytest.mark.parametrize(
    ("content", "statuses"),
    [
        pytest.param(b"changed since", [], id="other files are there now"),
        pytest.param(ONE["model.onnx"], [403], id="it may not be read"),
        pytest.param(ONE["model.onnx"], [503], id="it does not answer"),
    ],
)
def test_where_the_origin_fails_the_registry_stands_in_and_gets_the_token_alone(
    content: bytes, statuses: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("of-the-pod")
    with serving(content) as origin, serving(ONE["model.onnx"]) as registry:
        origin.statuses = statuses
        sources = [f"--origin={origin.url}/digits.onnx", f"--registry={registry.url}", f"--token-file={token}"]
        assert prepare(tmp_path / "models", ONE, *sources) == 0
        assert [authorization for _, authorization in origin.asked] == [""]
        assert [authorization for _, authorization in registry.asked] == ["Bearer of-the-pod"]
    assert left(tmp_path / "models") == ["digits/3/model.onnx"]
    assert "taking the model from the registry" in capsys.readouterr().err
