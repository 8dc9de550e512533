"""What takes space, and what can go."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from registry import hooks
from registry.models import ModelVersion
from registry.services import alias_set
from registry.storage import store
from tests.accounts._support.pages import Browser, page

Api = Callable[..., APIClient]
Register = Callable[..., ModelVersion]
pytestmark = pytest.mark.django_db


@pytest.fixture
def stored(store_folder: Path) -> str:
    """An artifact of 6 bytes that no version has and that was stored two hours ago; returns its digest."""
    assert not store_folder.exists()
    with store().begin("model.onnx") as writer:
        writer.write(b"unused")
        artifact = writer.commit()
    then = (timezone.now() - timedelta(hours=2)).timestamp()
    os.utime(store().path_of(artifact.digest), (then, then))
    return artifact.digest


def test_models_by_size_and_what_nothing_names(
    api: Api, register: Register, stored: str, usage_of: Callable[[str, ModelVersion], None]
) -> None:
    small, large, named = register("letters", "x"), register("digits", "x" * 10), register("digits", "y" * 9)
    alias_set(model="digits", name="champion", number=named.number, now=timezone.now(), actor="alice")
    ModelVersion.objects.filter(pk=small.pk).update(status="REJECTED")

    found = api(Scope.ADMIN).get("/api/v1/storage").json()

    assert found["models"] == [
        {"name": "digits", "versions": 2, "size_bytes": 19},
        {"name": "letters", "versions": 1, "size_bytes": 1},
    ]
    assert [(each["model"], each["number"]) for each in found["unnamed"]] == [("digits", 1), ("letters", 1)]
    assert found["store"]["unused"] == [{"digest": stored, "size_bytes": 6, "is_settled": True}]
    assert (found["store"]["size_bytes"], found["store"]["collectable_bytes"]) == (20, 6)
    assert 0 < found["store"]["free_bytes"] <= found["store"]["total_bytes"]

    def provider(_ids: object) -> list[hooks.Use]:
        live = hooks.Use("service default/a (revision a-1, stable)", "/a", "default", large.pk)
        return [live, hooks.Use("service default/b (revision b-1, failed)", "/b", "default", small.pk, is_history=True)]

    hooks.uses.register(provider)
    try:
        [left] = api(Scope.ADMIN).get("/api/v1/storage").json()["unnamed"]
    finally:
        hooks.uses.unregister(provider)
    assert (left["model"], left["remembered_by"]) == ("letters", 1)


def test_only_an_administrator_collects_what_no_version_has(api: Api, stored: str) -> None:
    assert api(Scope.WRITE).post("/api/v1/storage/collect").status_code == 403
    client = api(Scope.ADMIN)
    assert client.post("/api/v1/storage/collect").json() == {"deleted": [stored], "size_bytes": 6}
    assert not store().path_of(stored).exists()
    assert AuditEntry.objects.get(action="storage.collect").before == {"artifacts": 1, "size_bytes": 6}
    assert client.post("/api/v1/storage/collect").json() == {"deleted": [], "size_bytes": 0}


def test_the_page_shows_it_and_deletes_what_no_version_has(browser: Browser, register: Register, stored: str) -> None:
    register("digits", "x" * 10)
    admin = browser("default", Role.ADMIN, Scope.ADMIN)
    shown = page(admin, "/storage/")
    assert "digits version 1" in shown
    assert stored in shown
    assert admin.post("/storage/collect")["Location"] == "/storage/"
    assert stored not in page(admin, "/storage/")
    viewer = browser("default", Role.VIEWER)
    assert 'id="unused-title"' not in page(viewer, "/storage/")
    assert viewer.post("/storage/collect").status_code == 403
