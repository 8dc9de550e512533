"""The files of a version come back as they were."""

import asyncio
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import AsyncClient
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.http.downloads import Download
from integrations.artifacts.stream import open_stream
from registry import services
from registry.models import ModelVersion
from registry.storage import store

Api = Callable[..., APIClient]
ADDRESS = "/api/v1/models/digits/versions/1/artifact"


@pytest.fixture
def pushed(store_folder: Path, db: None) -> bytes:
    """Register a file of several pieces and return its bytes."""
    content = bytes(range(256)) * 10_000
    with store().begin("model.onnx") as writer:
        writer.write(content)
        stored = writer.commit()
    services.version_register(model="digits", artifact=stored, source_name="m.onnx", now=timezone.now(), actor="alice")
    return content


@pytest.mark.parametrize("accept", ["application/octet-stream", "*/*", "application/json"])
def test_a_file_comes_as_it_is(api: Api, pushed: bytes, accept: str) -> None:
    answer = api(Scope.READ).get(ADDRESS, headers={"Accept": accept})
    assert answer.status_code == 200
    assert b"".join(answer) == pushed
    assert answer["Content-Length"] == str(len(pushed))
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="digits-1.onnx"'
    assert answer["ETag"] == f'"{ModelVersion.objects.get().digest}"'


@pytest.mark.parametrize(
    ("scope", "address", "status"),
    [
        pytest.param(None, ADDRESS, 401, id="nobody without a token"),
        pytest.param(Scope.READ, "/api/v1/models/digits/versions/2/artifact", 404, id="an unknown version"),
        pytest.param(Scope.READ, "/api/v1/models/none/versions/1/artifact", 404, id="an unknown model"),
    ],
)
def test_what_is_refused(api: Api, pushed: bytes, scope: Scope | None, address: str, status: int) -> None:
    answer = api(scope).get(address, headers={"Accept": "application/octet-stream"})
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")


def test_files_that_are_gone_are_told_of(api: Api, pushed: bytes) -> None:
    store().delete(ModelVersion.objects.get().digest)
    answer = api(Scope.READ).get(ADDRESS)
    assert answer.status_code == 409
    assert "push the model again" in answer.json()["error"]["message"]


def test_a_folder_comes_as_a_tar_archive_that_is_always_the_same(tmp_path: Path) -> None:
    files = {"config.pbtxt": b"x" * 512, "1/model.onnx": b"y" * 2_000_001, "1/" + "long" * 40 + ".bin": b""}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    stream = open_stream(tmp_path)
    sent = b"".join(stream.pieces())
    assert (stream.suffix, stream.size_bytes) == (".tar", len(sent))
    with tarfile.open(fileobj=io.BytesIO(sent)) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == files  # type: ignore[union-attr]
        assert {(member.mtime, member.uid) for member in tar} == {(0, 0)}
    assert b"".join(open_stream(tmp_path).pieces()) == sent


def test_a_file_that_became_shorter_ends_the_answer(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"1234")
    stream = open_stream(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"12")
    with pytest.raises(OSError, match="ended 2 bytes before"):
        b"".join(stream.pieces())


async def test_pieces_are_made_only_as_they_are_taken() -> None:
    made: list[int] = []

    def pieces():
        for number in range(5):
            made.append(number)
            yield b"x"

    answer = aiter(Download(pieces(), filename="x", size_bytes=5, digest="d"))
    assert await anext(answer) == b"x"
    assert await anext(answer) == b"x"
    assert made == [0, 1]
    await answer.aclose()


@pytest.mark.django_db(transaction=True)
def test_it_comes_whole_under_asgi(api: Api, pushed: bytes) -> None:
    header = api(Scope.READ)._credentials["HTTP_AUTHORIZATION"]

    async def ask() -> bytes:
        answer = await AsyncClient().get(ADDRESS, headers={"Authorization": header})
        return b"".join([piece async for piece in answer])

    assert asyncio.run(ask()) == pushed


def test_the_stream_can_be_taken_up_at_any_byte(tmp_path: Path) -> None:
    for name, content in {"a": b"1" * 700, "b": b"", "c": b"2" * 512}.items():
        (tmp_path / name).write_bytes(content)
    stream = open_stream(tmp_path)
    whole = b"".join(stream.pieces())
    assert len(whole) == stream.size_bytes
    for first in (0, 1, 511, 512, 1211, 1212, 1536, stream.size_bytes - 1, stream.size_bytes):
        assert b"".join(stream.pieces(first)) == whole[first:]


def test_a_single_file_under_a_name_of_its_own_comes_as_an_archive_where_names_count(tmp_path: Path) -> None:
    (tmp_path / "digits.onnx").write_bytes(b"1234")
    assert (open_stream(tmp_path).suffix, open_stream(tmp_path, keeps_names=True).suffix) == (".onnx", ".tar")


def test_a_part_of_a_file_comes_where_it_is_asked_for(api: Api, pushed: bytes) -> None:
    answer = api(Scope.READ).get(ADDRESS, headers={"Range": "bytes=1500000-"})
    assert (answer.status_code, b"".join(answer)) == (206, pushed[1_500_000:])
    assert answer["Content-Range"] == f"bytes 1500000-{len(pushed) - 1}/{len(pushed)}"
