import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from django.urls import reverse
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from registry.models import ModelVersion, RegisteredModel

Api = Callable[..., APIClient]
BINARY = "application/octet-stream"


@pytest.fixture
def client(api: Api, store_folder: Path) -> APIClient:
    return api(Scope.WRITE)


def push(client: APIClient, body: bytes = b"some bytes", *, filename: str | None = "model.onnx", **more: object):
    address = reverse("registry_api:version-list", kwargs={"name": more.pop("model", "digits")})
    address += "" if filename is None else f"?filename={filename}"
    return client.post(address, body, content_type=more.pop("content_type", BINARY), **more)


def stored(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


def test_a_new_file_is_a_new_version_of_a_new_model(client: APIClient, store_folder: Path) -> None:
    answer = push(client, b"some bytes")
    assert answer.status_code == 201
    body = answer.json()
    assert (body["model"], body["number"], body["status"]) == ("digits", 1, "PENDING")
    assert (body["size_bytes"], body["source_name"]) == (10, "model.onnx")
    assert body["signature"] == {"inputs": [], "outputs": []}
    assert body["created_by"] == "alice (token alice-write)"
    version = ModelVersion.objects.get()
    assert body["digest"] == version.digest
    folder = store_folder / version.digest.removeprefix("sha256:")
    assert version.artifact_uri == folder.as_uri()
    assert (folder / "model.onnx").read_bytes() == b"some bytes"


def test_the_same_file_again_is_the_same_version(client: APIClient, store_folder: Path) -> None:
    first = push(client)
    assert push(client, b"other bytes").json()["number"] == 2
    again = push(client, filename="renamed.onnx")
    assert again.status_code == 200
    assert again.json() == first.json()
    assert ModelVersion.objects.count() == 2
    assert len(stored(store_folder)) == 2


def test_the_same_file_in_another_model_is_stored_once(client: APIClient, store_folder: Path) -> None:
    push(client)
    assert push(client, model="others").status_code == 201
    assert len(stored(store_folder)) == 1


def test_a_file_of_several_pieces_arrives_whole(client: APIClient, store_folder: Path) -> None:
    content = bytes(range(256)) * 4096 * 3
    digest = hashlib.sha256(content).hexdigest()
    answer = push(client, content, headers={"X-Content-SHA256": digest.upper()})
    assert (answer.status_code, answer.json()["size_bytes"]) == (201, len(content))
    assert hashlib.sha256((store_folder / stored(store_folder)[0]).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize(
    ("more", "status", "field", "told"),
    [
        pytest.param({"filename": None}, 400, "filename", "filename is missing; add ?filename=", id="no file name"),
        pytest.param({"filename": "../model.onnx"}, 400, "filename", "is not a file name", id="a path upwards"),
        pytest.param({"filename": "/etc/passwd"}, 400, "filename", "is not a file name", id="an absolute path"),
        pytest.param({"filename": "..%5Cm.onnx"}, 400, "filename", "is not a file name", id="a Windows path"),
        pytest.param({"filename": ".."}, 400, "filename", "is not a file name", id="only dots"),
        pytest.param({"filename": "x" * 300 + ".onnx"}, 400, "filename", "305 characters", id="a long name"),
        pytest.param({"filename": "model.pkl"}, 400, "filename", "a pickle, which is code", id="a pickle"),
        pytest.param({"filename": "model.h5"}, 400, "filename", "accepted are *.onnx", id="a format nobody serves"),
        pytest.param({"model": "a@b"}, 400, "name", "expected a model name", id="a wrong model name"),
        pytest.param({"body": b""}, 400, None, "the model file is empty", id="an empty file"),
        pytest.param(
            {"headers": {"X-Content-SHA256": "0" * 64}},
            400,
            "X-Content-SHA256",
            "X-Content-SHA256 says 0000",
            id="another sha256",
        ),
        pytest.param(
            {"headers": {"X-Content-SHA256": "abc"}},
            400,
            "X-Content-SHA256",
            "64 hex digits",
            id="a sha256 that is none",
        ),
        pytest.param(
            {"content_type": "multipart/form-data; boundary=x"},
            415,
            None,
            f"send the file's bytes as {BINARY}",
            id="a form",
        ),
        pytest.param(
            {"headers": {"Content-Encoding": "gzip"}}, 400, "Content-Encoding", "bytes as they are", id="compressed"
        ),
        pytest.param(
            {"headers": {"Content-Length": "10x"}},
            400,
            "Content-Length",
            "a number of bytes",
            id="a length that is none",
        ),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    client: APIClient, store_folder: Path, more: dict[str, object], status: int, field: str | None, told: str
) -> None:
    answer = push(client, **more)
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (status, field)
    assert told in error["message"]
    assert stored(store_folder) == []
    assert not RegisteredModel.objects.exists()


def test_a_form_is_refused_with_the_command_that_sends_the_file(client: APIClient, store_folder: Path) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="model.onnx"\r\n\r\nbytes\r\n--x--\r\n'
    answer = push(client, form, content_type="multipart/form-data; boundary=x", filename=None)
    assert answer.status_code == 415
    assert answer.json()["error"]["message"] == (
        "the body is a form (multipart/form-data); send the file's bytes as application/octet-stream and nothing "
        "around them, with the file's name in the address: curl --data-binary @model.onnx -H 'Content-Type: "
        "application/octet-stream' 'http://testserver/api/v1/models/digits/versions?filename=model.onnx'"
    )
    assert stored(store_folder) == []


def test_one_byte_too_many_is_refused_and_the_limit_itself_is_not(
    client: APIClient, store_folder: Path, settings: Settings
) -> None:
    settings.MAX_ARTIFACT_BYTES = 10
    answer = push(client, b"x" * 11)
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == ("the model file has 11 bytes, more than the 10 bytes that are allowed")
    assert stored(store_folder) == []
    assert push(client, b"x" * 10).status_code == 201


def test_a_store_that_cannot_be_written_is_told(client: APIClient, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    settings.ARTIFACTS_FOLDER = tmp_path / "a-file" / "artifacts"
    answer = push(client)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert "could not be stored: Not a directory" in answer.json()["error"]["message"]
