"""Quotas of teams, through the API: before the bytes come in, while they do, and when the version is registered."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.quota import Quota
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.services import teams
from accounts.services.quotas import quota_get, quota_set
from common.errors import QuotaExceeded
from common.uris import parse_prefixes
from integrations.artifacts.store import StoredArtifact
from registry.models import ModelVersion
from registry.services import version_register
from registry.services.imports import import_request
from registry.services.quotas import check_quota
from tests._support.page import marked
from tests.accounts._support.pages import Browser

pytestmark = pytest.mark.django_db
FILE = b"the bytes of a model"


@pytest.fixture
def client(api: Callable[..., APIClient], store_folder: Path) -> APIClient:
    return api(Scope.ADMIN)


@pytest.fixture(autouse=True)
def _team(client: APIClient) -> None:
    teams.team_create(name="blue", actor="test", now=timezone.now())
    teams.ownership_set(team="blue", kind=Owned.MODEL, name="digits", actor="test", now=timezone.now())


def limit(*, versions: int | None = None, size_bytes: int | None = None, team: str = "blue") -> None:
    quota_set(team=team, quota=Quota(versions, size_bytes), actor="test", now=timezone.now())


def push(client: APIClient, content: bytes = FILE, **headers: str) -> tuple[int, str]:
    address = "/api/v1/models/digits/versions?filename=model.onnx"
    answer = client.post(address, content, content_type="application/octet-stream", headers=headers)
    return answer.status_code, answer.json().get("error", {}).get("message", "")


def test_versions_are_counted(client: APIClient) -> None:
    limit(versions=1)
    assert push(client) == (201, "")
    status, message = push(client, b"another")
    assert status == 409
    assert message == (
        "team 'blue' has 1 of 1 model versions; delete versions, or ask an administrator of the installation for more"
    )
    assert ModelVersion.objects.count() == 1


def test_bytes_are_counted_by_the_announced_length(client: APIClient) -> None:
    limit(size_bytes=30)
    assert push(client) == (201, "")
    status, message = push(client, b"other bytes")
    assert status == 409
    assert "team 'blue' has 20 of 30 bytes of model versions, and this version has 11" in message
    assert push(client, b"ten bytes!")[0] == 201


def test_the_same_file_again_is_its_version_whatever_the_quota(client: APIClient) -> None:
    push(client)
    limit(versions=0, size_bytes=0)
    announced = {"X-Content-SHA256": hashlib.sha256(FILE).hexdigest()}
    assert push(client, FILE, **announced) == (200, "")
    lie = push(client, b"another", **announced)
    assert lie[0] == 400, "who announces another file than he sends gets nothing for it"


def test_a_check_before_the_upload_says_so_too(client: APIClient) -> None:
    limit(size_bytes=5)
    files = {"files": [{"path": "model.onnx", "size_bytes": 6}]}
    answer = client.post("/api/v1/models/digits/versions/check", files)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "quota_exceeded")


def test_a_version_is_checked_again_when_it_is_registered() -> None:
    limit(size_bytes=5)
    artifact = StoredArtifact("sha256:" + "0" * 64, "file:///a", 6, {"model.onnx": "0" * 64})
    with pytest.raises(QuotaExceeded, match="this version has 6"):
        version_register(model="digits", artifact=artifact, source_name="model.onnx", now=timezone.now(), actor="alice")


def test_an_import_is_not_ordered_without_room(settings: Settings) -> None:
    settings.IMPORT_FROM = parse_prefixes(["https://models.example.com/"])
    limit(versions=0)
    with pytest.raises(QuotaExceeded):
        import_request(model="digits", uri="https://models.example.com/model.onnx", now=timezone.now(), actor="alice")


def test_other_teams_models_do_not_count_and_default_has_the_rest(client: APIClient) -> None:
    push(client)
    assert (quota_get(team="blue").usage.versions, quota_get(team="default").usage.versions) == (1, 0)
    limit(versions=0, team="default")
    assert check_quota(model="digits", size_bytes=1) is None
    with pytest.raises(QuotaExceeded, match="team 'default' has 0 of 0"):
        check_quota(model="elsewhere", size_bytes=1)


def test_the_api_shows_and_sets_it(client: APIClient) -> None:
    push(client)
    address = "/api/v1/teams/blue/quota"
    nothing = {
        "max_versions": None,
        "max_bytes": None,
        "requests_per_second": None,
        "rows_per_minute": None,
        "used_versions": 1,
        "used_bytes": len(FILE),
    }
    assert client.get(address).json() == nothing
    wanted = {"max_versions": 3, "max_bytes": None}
    assert client.put(address, wanted).json() == {**nothing, **wanted}
    assert client.put(address, {"max_versions": -1, "max_bytes": None}).status_code == 400
    assert client.put(address, {"max_versions": 1}).status_code == 400
    assert client.get("/api/v1/audit?action=team.quota").json()["results"][0]["after"] == {
        **wanted,
        "requests_per_second": None,
        "rows_per_minute": None,
    }


def test_the_page_shows_and_sets_it(browser: Browser, client: APIClient) -> None:
    push(client)
    admin_browser = browser()
    admin_browser.post("/teams/blue/quota", {"max_versions": "5", "max_bytes": ""})
    page = admin_browser.get("/teams/blue/").content.decode()
    assert marked(page, "used-versions") == ["1 of 5"]
    assert marked(page, "used-bytes") == [f"{len(FILE)} bytes"]
    assert admin_browser.post("/teams/blue/quota", {"max_versions": "many"}).status_code == 400
    assert quota_get(team="blue").quota == Quota(5, None)
