"""Fetching from a server that speaks S3 and from one that speaks Google Cloud Storage's protocol, over real sockets."""

import importlib.util
import io
import tarfile
from collections.abc import Callable

import pytest

from common.errors import FairleadError, InvalidInput, NotFound, TooLarge, Unavailable
from integrations.artifacts.store import StoredArtifact
from integrations.sources import buckets as module
from integrations.sources.content import CHUNK_BYTES
from tests.integrations._support.buckets import Bucket, environment
from tests.integrations._support.web_servers import sha256_of

Fetch = Callable[..., StoredArtifact]
Names = Callable[[], list[str]]
LARGE = bytes(range(256)) * (7 * CHUNK_BYTES // 256)


def test_an_object_comes_in_whole_and_with_its_progress(bucket: Bucket, fetch: Fetch) -> None:
    bucket.put("digits/model.onnx", LARGE)
    seen: list[tuple[int, int | None]] = []
    uri = f"{bucket.scheme}://models/digits/model.onnx"
    found = fetch(
        uri,
        allowed=[f"{bucket.scheme}://models/digits"],
        sha256=sha256_of(LARGE),
        progress=lambda *now: seen.append(now),
    )
    assert found.files == {"model.onnx": sha256_of(LARGE)}
    assert seen[-1] == (len(LARGE), len(LARGE))
    assert len(seen) > 5


@pytest.mark.parametrize("end", ["", "/"])
def test_a_prefix_is_a_folder_in_tritons_layout(bucket: Bucket, fetch: Fetch, end: str) -> None:
    bucket.put("digits/1/model.onnx", b"model")
    bucket.put("digits/config.pbtxt", b"max_batch_size: 3")
    bucket.put("digits-of-others/1/model.onnx", b"other")
    found = fetch(f"{bucket.scheme}://models/digits{end}", allowed=[f"{bucket.scheme}://models"])
    assert found.files == {"1/model.onnx": sha256_of(b"model"), "config.pbtxt": sha256_of(b"max_batch_size: 3")}


def test_what_consoles_leave_for_empty_folders_is_passed_over(bucket: Bucket, fetch: Fetch) -> None:
    bucket.put("digits/1/", b"-")  # most leave it empty, which the emulator of gs does not take
    bucket.put("digits/1/model.onnx", b"model")
    assert list(fetch(f"{bucket.scheme}://models/digits/", allowed=[f"{bucket.scheme}://models"]).files) == [
        "1/model.onnx"
    ]


def test_an_archive_is_unpacked(bucket: Bucket, fetch: Fetch) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        member = tarfile.TarInfo("1/model.onnx")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"model"))
    bucket.put("digits.tar.gz", content.getvalue())
    found = fetch(f"{bucket.scheme}://models/digits.tar.gz", allowed=[f"{bucket.scheme}://models"])
    assert found.files == {"1/model.onnx": sha256_of(b"model")}


@pytest.mark.parametrize(
    ("path", "error", "told"),
    [
        ("models/nowhere.onnx", NotFound, "there is nothing"),
        ("models/nowhere/", NotFound, "there is nothing"),
        ("no-such-bucket/model.onnx", NotFound, "there is nothing"),
        ("models/bare/", InvalidInput, "has no model file"),
        ("models/many/", TooLarge, "more than the 5 files"),
        ("models/huge.onnx", TooLarge, "FAIRLEAD_MAX_ARTIFACT_BYTES"),
        ("models/bare/readme.txt", FairleadError, "nothing|not a model"),
    ],
)
def test_what_is_no_model_is_refused(
    bucket: Bucket, fetch: Fetch, left_behind: Names, path: str, error: type[FairleadError], told: str
) -> None:
    bucket.put("bare/readme.txt", b"read me")
    bucket.put("huge.onnx", bytes(8 * CHUNK_BYTES + 1))
    for number in range(6):
        bucket.put(f"many/{number}.onnx", b"x")
    with pytest.raises(error, match=told):
        fetch(f"{bucket.scheme}://{path}", allowed=[f"{bucket.scheme}://models", f"{bucket.scheme}://no-such-bucket"])
    assert left_behind() == []


def test_an_object_that_is_replaced_while_it_is_read_is_read_again_later(
    bucket: Bucket, fetch: Fetch, left_behind: Names
) -> None:
    bucket.put("model.onnx", LARGE)
    replaced: list[int] = []

    def replace(done: int, total: int | None) -> None:
        if done and not replaced:
            replaced.append(done)
            bucket.put("model.onnx", bytes(len(LARGE)))

    with pytest.raises(Unavailable, match=r"was replaced while it was read|cannot be read"):
        fetch(f"{bucket.scheme}://models/model.onnx", allowed=[f"{bucket.scheme}://models"], progress=replace)
    assert left_behind() == []


def test_a_store_that_is_away_is_worth_another_try(
    fetch: Fetch, left_behind: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment({"s3": "http://127.0.0.1:1", "gs": ""}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(Unavailable, match="cannot be read"):
        fetch("s3://models/model.onnx", allowed=["s3://models"])
    assert left_behind() == []


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("s3fs", "gcsfs") else find(name))
    with pytest.raises(InvalidInput, match=r"needs the package s3fs.*pip install 'fairlead\[s3\]'"):
        module.check_installed("s3")
    with pytest.raises(InvalidInput, match=r"needs the package gcsfs.*pip install 'fairlead\[gs\]'"):
        module.check_installed("gs")
    module.check_installed("https")
