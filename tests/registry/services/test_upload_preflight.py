"""Files that could become a version, by their names and sizes."""

from collections.abc import Callable

import pytest
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.errors import InvalidInput, TooLarge
from registry.models import ModelVersion, RegisteredModel
from registry.services.upload_preflight import Offer, OfferedFile, offer

Api = Callable[..., APIClient]
ADDRESS = "/api/v1/models/digits/versions/check"


def of(*paths: str, size_bytes: int = 10) -> Offer:
    files = [OfferedFile(path, size_bytes) for path in paths]
    return offer(files, model="digits", max_bytes=100, max_files=5)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        pytest.param(["a.onnx"], Offer("a.onnx", is_archive=False), id="a model's file goes as it is"),
        pytest.param(["a.tar.gz"], Offer("a.tar.gz", is_archive=False), id="an archive goes as it is"),
        pytest.param(["model.onnx", "config.pbtxt"], Offer("digits.tar", is_archive=True), id="several are packed"),
        pytest.param(["a/1/model.onnx"], Offer("digits.tar", is_archive=True), id="the folder around it is taken off"),
        pytest.param(["a/config.pbtxt", "a/1/model.py"], Offer("digits.tar", is_archive=True), id="Triton's layout"),
        pytest.param(["1/model.savedmodel/saved_model.pb"], Offer("digits.tar", is_archive=True), id="a deep one"),
    ],
)
def test_a_model_is_told_how_it_is_to_be_sent(paths: list[str], found: Offer) -> None:
    assert of(*paths) == found


@pytest.mark.parametrize(
    ("paths", "size_bytes", "error", "told"),
    [
        pytest.param([], 1, InvalidInput, "no files", id="none"),
        pytest.param(["a.onnx"], 0, InvalidInput, "empty", id="empty"),
        pytest.param(["a.onnx"], 101, TooLarge, "at most 100 are taken", id="one that is too large"),
        pytest.param(["a.onnx", "b", "c"], 40, TooLarge, "has 120 bytes", id="too large together"),
        pytest.param(list("abcdef"), 1, TooLarge, "6 files; at most 5", id="too many"),
        pytest.param(["notes.txt"], 1, InvalidInput, "is not a model file", id="no model file"),
        pytest.param(["a/notes.txt"], 1, InvalidInput, "no model file", id="no model in the folder"),
        pytest.param(["a/1/model.onnx", "a/2/model.onnx"], 1, InvalidInput, "push them one by one", id="two versions"),
        pytest.param(["../model.onnx", "b"], 1, InvalidInput, "not a path below", id="a way out"),
        pytest.param(["model.onnx", "model.onnx"], 1, InvalidInput, "is twice", id="the same twice"),
    ],
)
def test_what_cannot_be_a_version_is_refused(
    paths: list[str], size_bytes: int, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        of(*paths, size_bytes=size_bytes)


def test_the_api_answers_and_changes_nothing(api: Api) -> None:
    body = {"files": [{"path": "model.onnx", "size_bytes": 10}], "is_new_model": True}
    answer = api(Scope.WRITE).post(ADDRESS, body, format="json")
    assert (answer.status_code, answer.json()) == (200, {"filename": "model.onnx", "is_archive": False})
    assert not RegisteredModel.objects.exists()
    assert not ModelVersion.objects.exists()


@pytest.mark.parametrize(
    ("more", "status", "told"),
    [
        pytest.param({"is_new_model": True}, 409, "is there already", id="the name is taken"),
        pytest.param({"files": [{"path": "a.onnx", "size_bytes": 1 << 40}]}, 413, "at most", id="too large"),
        pytest.param({"files": [{"path": "a.txt", "size_bytes": 1}]}, 400, "not a model file", id="no model"),
        pytest.param({"sizes": []}, 400, "sizes is not a field", id="a misspelt field"),
        pytest.param({"files": [{"path": "a.onnx", "bytes": 1}]}, 400, "bytes is not a field", id="inside too"),
    ],
)
def test_the_api_says_what_is_wrong(
    api: Api, settings: Settings, more: dict[str, object], status: int, told: str
) -> None:
    client = api(Scope.WRITE)
    client.post("/api/v1/models", {"name": "digits"}, format="json")
    body = {"files": [{"path": "model.onnx", "size_bytes": 10}], **more}
    answer = client.post(ADDRESS, body, format="json")
    assert answer.status_code == status
    assert told in answer.json()["error"]["message"]
