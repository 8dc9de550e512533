"""Test databases are copies of a template, and empty again after a test that commits."""

from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from deployments.models import Rollout
from tests import scenes
from tests.servers import template
from tests.servers.database import empty_tables


@pytest.mark.django_db
def test_a_copy_lacks_no_migration() -> None:
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_another_migration_or_model_makes_another_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "PLATFORM", tmp_path)
    keys = {template.template_key()}
    for name in ("registry/migrations/0001_initial.py", "registry/models.py", "deployments/models/builds.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
        keys.add(template.template_key())
    (tmp_path / "registry" / "views.py").write_text("")
    keys.add(template.template_key())
    assert len(keys) == 4


@pytest.mark.django_db(transaction=True)
def test_what_a_test_committed_is_deleted_from_every_table() -> None:
    scenes.rollout(scenes.service())
    scenes.webhook()
    assert Rollout.objects.exists()
    empty_tables()
    ours = [model for model in apps.get_models() if model._meta.app_label in {"accounts", "registry", "deployments"}]
    assert [model for model in ours if model._default_manager.exists()] == []
