"""Large bodies under ASGI, through the application that uvicorn serves."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.http.asgi import LazyBody
from registry.models import ModelVersion
from tests.common._support.asgi_client import Client

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT_BYTES = 1000
UPLOAD = "/api/v1/models/digits/versions"


@pytest.fixture
def bearer(api: Callable[..., APIClient], settings: Settings, tmp_path: Path) -> dict[str, str]:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = LIMIT_BYTES
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    return {"Authorization": api(Scope.ADMIN)._credentials["HTTP_AUTHORIZATION"], "Content-Type": "application/json"}


@pytest.fixture
def upload(bearer: dict[str, str]) -> dict[str, str]:
    return bearer | {"Content-Type": "application/octet-stream"}


def count_versions() -> int:
    try:
        return ModelVersion.objects.count()
    finally:
        connection.close()  # of the thread this runs in


def artifacts(folder: Path) -> list[Path]:
    return [path for path in (folder / "artifacts").rglob("*") if path.is_file()]


@pytest.mark.parametrize("announced", [True, False], ids=["with its length", "in chunks"])
async def test_an_upload_is_read_piece_by_piece(upload: dict[str, str], tmp_path: Path, announced: bool) -> None:
    pieces = [bytes([n]) * 100_000 for n in range(40)]
    headers = upload | ({"Content-Length": "4000000"} if announced else {"Transfer-Encoding": "chunked"})
    client = Client(*pieces)
    status, body = await client.ask("POST", UPLOAD, headers, "filename=model.onnx")
    assert (status, body["size_bytes"]) == (201, 4_000_000)
    assert artifacts(tmp_path)[0].read_bytes() == b"".join(pieces)
    assert client.taken == 40


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        pytest.param({"Authorization": "Bearer flt_nobody"}, 401, "not_authenticated", id="from nobody known"),
        pytest.param({"Content-Length": "99999999999999"}, 413, "too_large", id="beyond the limit"),
        pytest.param({"Content-Type": "text/plain"}, 415, "unsupported_media_type", id="of a wrong type"),
    ],
)
async def test_not_a_byte_is_read_of_an_upload(
    upload: dict[str, str], headers: dict[str, str], status: int, code: str
) -> None:
    client = Client(b"x" * 5000, b"x")
    answer = await client.ask("POST", UPLOAD, upload | {"Content-Length": "5001"} | headers, "filename=model.onnx")
    assert (answer[0], answer[1]["error"]["code"], client.taken) == (status, code, 0)


async def test_an_upload_in_chunks_ends_at_the_limit(
    upload: dict[str, str], settings: Settings, tmp_path: Path
) -> None:
    settings.MAX_ARTIFACT_BYTES = 3_000_000
    client = Client(*[b"x" * 1_000_000] * 50)
    status, body = await client.ask("POST", UPLOAD, upload | {"Transfer-Encoding": "chunked"}, "filename=model.onnx")
    assert (status, body["error"]["code"]) == (413, "too_large")
    assert client.taken == 4
    assert artifacts(tmp_path) == []


@pytest.mark.parametrize("headers", [{"Content-Length": "4000"}, {"Transfer-Encoding": "chunked"}])
async def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(
    upload: dict[str, str], tmp_path: Path, headers: dict[str, str]
) -> None:
    await Client(b"x" * 2000, leaves=True).ask("POST", UPLOAD, upload | headers, "filename=model.onnx")
    assert artifacts(tmp_path) == []
    assert await sync_to_async(count_versions)() == 0


async def test_a_body_that_ends_early_is_refused(upload: dict[str, str], tmp_path: Path) -> None:
    status, body = await Client(b"x" * 2000).ask(
        "POST", UPLOAD, upload | {"Content-Length": "4000"}, "filename=model.onnx"
    )
    assert status == 400
    assert body["error"]["message"] == "the body ended after 2000 of 4000 bytes; send it again"
    assert artifacts(tmp_path) == []


async def test_json_without_a_length_is_refused_and_not_taken_for_empty(bearer: dict[str, str]) -> None:
    client = Client(b'{"name": "di', b'gits"}')
    status, body = await client.ask("POST", "/api/v1/models", bearer | {"Transfer-Encoding": "chunked"})
    assert (status, body["error"]["code"], client.taken) == (411, "length_required", 0)


@pytest.mark.parametrize("media_type", ["application/json", "application/yaml"])
async def test_a_body_beyond_the_limit_is_refused_early(bearer: dict[str, str], media_type: str) -> None:
    client = Client(*[b" " * 1000] * 5000)
    headers = bearer | {"Content-Type": media_type, "Content-Length": "5000000"}
    status, body = await client.ask("POST", "/api/v1/models", headers)
    assert (status, body["error"]["code"]) == (413, "too_large")
    assert client.taken <= 3


async def test_a_get_with_a_large_body_is_refused(bearer: dict[str, str]) -> None:
    client = Client(b"x")
    status, body = await client.ask("GET", "/api/v1/models", bearer | {"Transfer-Encoding": "chunked"})
    assert (status, body["error"]["message"]) == (413, "GET takes no large body; send none")
    assert client.taken == 0


async def test_a_request_without_a_body_is_answered(bearer: dict[str, str]) -> None:
    assert (await Client(b"").ask("GET", "/api/v1/models", bearer))[0] == 200


async def test_reading_in_the_event_loop_is_a_fault_not_a_deadlock() -> None:
    body = LazyBody(Client(b"x").receive, LIMIT_BYTES)
    with pytest.raises(RuntimeError, match="synchronous view"):
        body.read(1)
    assert await asyncio.to_thread(body.read) == b"x"
    assert threading.active_count() > 0
