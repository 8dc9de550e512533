"""Copies in a server that speaks S3 and in one that speaks Google Cloud Storage's protocol, as pods then read them."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import InvalidInput, NotFound, Unavailable
from integrations.artifacts.bucket_copies import copy_to
from integrations.artifacts.store import digest_of_folder
from tests.integrations._support.buckets import Bucket, environment

FILES = {"config.pbtxt": b"max_batch_size: 3", "1/model.onnx": bytes(range(256)) * 999}


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        file = tmp_path / "artifact" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path / "artifact"


def test_a_pod_gets_the_copy_by_its_digest_while_the_control_plane_is_away(
    bucket: Bucket, artifact: Path, tmp_path: Path
) -> None:
    digest = digest_of_folder(artifact)
    place = f"{bucket.scheme}://models/fairlead/{digest.removeprefix('sha256:')}/"
    assert copy_to(place, artifact) == len(FILES)
    assert copy_to(place, artifact) == 0, "it is there"
    away = ["--registry=http://127.0.0.1:1/", f"--token-file={tmp_path / 'no-token'}"]
    named = [f"--origin={place}", f"--digest={digest}", "--name=digits", "--version=7"]
    command = [sys.executable, "-m", "serving_runtime", "prepare", *named, *away]
    command.append(f"--model-repository={tmp_path / 'pod'}")
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "pod" / "digits" / "7" / "model.onnx").read_bytes() == FILES["1/model.onnx"]


def test_what_broke_off_is_completed(bucket: Bucket, artifact: Path) -> None:
    bucket.put("copies/1/model.onnx", b"half of it")
    assert copy_to(f"{bucket.scheme}://models/copies/", artifact) == len(FILES)
    assert copy_to(f"{bucket.scheme}://models/copies/", artifact) == 0


def test_a_bucket_that_is_missing_is_named(bucket: Bucket, artifact: Path) -> None:
    with pytest.raises((NotFound, InvalidInput, Unavailable), match=r"://nowhere-at-all/x cannot be written"):
        copy_to(f"{bucket.scheme}://nowhere-at-all/x", artifact)


def test_a_store_that_is_away_is_worth_another_try(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment({"s3": "http://127.0.0.1:1", "gs": ""}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Unavailable, match="s3://models/x cannot be written"):
        copy_to("s3://models/x", artifact)


def test_files_that_are_gone_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="push the model version again"):
        copy_to("s3://models/x", tmp_path / "gone")
