"""A version that today's clients could not use is rejected where that was asked for."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from registry import services
from registry.domain.version_lifecycle import Accepted, Status
from registry.models import ModelVersion, RegisteredModel
from registry.services.version_checks import check_end, checks_begin

Api = Callable[..., APIClient]
Register = Callable[..., ModelVersion]
PUSH = "/api/v1/models/digits/versions?filename=model.onnx"


def signature(size: int) -> dict[str, object]:
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, size]}], "outputs": []}


@pytest.fixture
def client(api: Api, register: Register, store_folder: Path) -> APIClient:
    """A model whose version 1 takes rows of 4 and is the champion."""
    register()
    ModelVersion.objects.update(signature=signature(4))
    services.alias_set(model="digits", name="champion", number=1, now=timezone.now(), actor="x")
    return api(Scope.WRITE)


def push(client: APIClient, query: str = "", body: bytes = b"two"):
    return client.post(f"{PUSH}{query}", body, content_type="application/octet-stream")


def checked(number: int, size: int) -> ModelVersion:
    """Return the version after its check found that it takes rows of `size`."""
    version = ModelVersion.objects.get(number=number)
    (claim,) = checks_begin(version_id=version.pk, now=timezone.now(), lease=timedelta(seconds=60))
    assert claim is not None
    assert check_end(claim=claim, outcome=Accepted(signature(size), "onnx"), now=timezone.now())
    version.refresh_from_db()
    return version


@pytest.mark.parametrize("query", ["&compatible_with=@champion", "&compatible_with=1"])
def test_one_that_does_not_fit_is_rejected_with_the_reason(client: APIClient, query: str) -> None:
    made = push(client, query)
    assert (made.status_code, made.json()["compatible_with"]) == (201, 1)
    version = checked(2, 5)
    assert version.status == Status.REJECTED
    assert version.reason == ("it is not compatible with version 1: input 'x' takes [-1,5], clients send [-1,4]")


def test_one_that_fits_is_ready(client: APIClient) -> None:
    push(client, "&compatible_with=@champion")
    assert checked(2, 4).status == Status.READY


def test_nothing_is_compared_where_nobody_asked(client: APIClient) -> None:
    assert push(client).json()["compatible_with"] is None
    assert checked(2, 5).status == Status.READY


def test_the_setting_of_the_model_asks_for_all(client: APIClient) -> None:
    client.patch("/api/v1/models/digits", {"compatible_with": "@champion"})
    assert push(client).json()["compatible_with"] == 1
    assert push(client, "&compatible_with=", b"three").json()["compatible_with"] is None
    assert checked(2, 5).status == Status.REJECTED
    assert checked(3, 5).status == Status.READY


def test_the_setting_may_name_an_alias_that_is_not_there_yet(client: APIClient) -> None:
    RegisteredModel.objects.update(compatible_with="@later")
    assert push(client).status_code == 201


def test_an_alias_that_moves_meanwhile_changes_nothing(client: APIClient) -> None:
    push(client, "&compatible_with=@champion")
    push(client, "", b"three")
    checked(3, 5)
    services.alias_set(model="digits", name="champion", number=3, now=timezone.now(), actor="x")
    services.version_delete(model="digits", number=1, now=timezone.now(), actor="x")
    assert checked(2, 5).status == Status.REJECTED


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        pytest.param("&compatible_with=@none", 404, "has no alias 'none'", id="an unknown alias"),
        pytest.param("&compatible_with=9", 404, "has no version 9", id="an unknown number"),
    ],
)
def test_a_version_to_compare_with_must_be_there(client: APIClient, query: str, status: int, said: str) -> None:
    answer = push(client, query)
    assert answer.status_code == status
    assert said in answer.json()["error"]["message"]
    assert ModelVersion.objects.count() == 1


def test_a_version_to_compare_with_must_be_ready(client: APIClient) -> None:
    push(client)
    answer = push(client, "&compatible_with=2", b"three")
    assert (answer.status_code, answer.json()["error"]["field"]) == (409, "compatible_with")


def test_the_same_files_again_are_held_to_what_is_asked_now(client: APIClient) -> None:
    push(client)
    pending = push(client, "&compatible_with=@champion")
    assert pending.status_code == 409
    assert "still being checked" in pending.json()["error"]["message"]
    checked(2, 5)
    misfit = push(client, "&compatible_with=@champion")
    assert misfit.status_code == 409
    assert "it is not compatible with version 1" in misfit.json()["error"]["message"]
    assert push(client).status_code == 200
    assert push(client, "&compatible_with=2").status_code == 200
