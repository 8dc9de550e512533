"""The pages of models that are imported."""

from collections.abc import Callable

from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.services import teams
from common.uris import parse_prefixes
from registry.models import ModelImport, ModelVersion
from registry.services import imports
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

MODEL = "/models/digits/"


def test_imports_are_shown_with_their_progress_and_can_be_stopped(
    browser: Browser, register: Callable[..., ModelVersion], settings: Settings
) -> None:
    register()
    settings.IMPORT_FROM = parse_prefixes(["https://models.example"])
    now = timezone.now()
    row = imports.import_request(model="digits", uri="https://models.example/m.onnx?sig=secret", now=now, actor="alice")
    ModelImport.objects.update(bytes_done=1536 * 1024, bytes_total=3 << 20)
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    shown = page(client, MODEL)
    assert "https://models.example/m.onnx" in shown
    assert "secret" not in shown
    assert "1.5\u00a0MiB of 3.0\u00a0MiB" in shown
    asking = {"HX-Request": "true", "HX-Target": "imports"}
    part = client.get(MODEL, headers=asking).content.decode()
    assert part.lstrip().startswith("<section")
    assert 'hx-trigger="every 2s"' in part
    assert client.post(f"{MODEL}imports/{row.pk}/stop").status_code == 302
    assert 'hx-trigger="every 2s"' not in page(client, MODEL)
    assert "stopped it" in page(client, MODEL)
    assert client.get(MODEL, headers=asking).headers["HX-Refresh"] == "true"


def test_a_model_that_is_to_come_by_an_import_has_a_page(browser: Browser, settings: Settings) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert marked(page(client, "/models/"), "no-imports")
    desired_states = {"model": "coming", "uri": "https://models.example/m.onnx"}
    refused = client.post("/models/import", desired_states)
    assert refused.status_code == 400
    assert "importing by URI is switched off" in refused.content.decode()
    settings.IMPORT_FROM = parse_prefixes(["https://models.example"])
    assert client.get("/models/coming/").status_code == 404
    asked = client.post("/models/import", {**desired_states, "sha256": "AB" * 32})
    assert (asked.status_code, asked.headers["Location"]) == (302, "/models/coming/")
    row = ModelImport.objects.get()
    assert (row.sha256, row.created_by) == ("ab" * 32, "dora (token d)")
    assert marked(page(client, "/models/coming/"), "first-is-coming")
    assert marked(page(client, "/models/"), "imports-in-progress")
    stranger = browser("red", Role.DEPLOYER, Scope.WRITE)
    teams.member_delete(team="default", username="dora", actor="test", now=timezone.now())
    assert not marked(page(stranger, "/models/"), "imports-in-progress")
    assert stranger.get("/models/coming/").status_code == 404
    assert stranger.post("/models/import", desired_states).status_code in (403, 404)
