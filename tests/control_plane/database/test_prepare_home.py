"""`manage.py prepare_home`: what `fairlead up` needs of the database, in one command."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiToken
from clusters.models import Cluster
from tests.servers.template import PLATFORM

pytestmark = pytest.mark.django_db


def prepared(token: Path) -> str:
    said = StringIO()
    call_command("prepare_home", token=token, stdout=said)
    return said.getvalue().strip()


def test_it_leaves_one_token_however_often_it_runs(tmp_path: Path) -> None:
    token = tmp_path / "token"
    assert prepared(token) == "no"
    first = token.read_text()
    assert prepared(token) == "no"
    assert token.read_text() == first
    assert ApiToken.objects.filter(name="local").count() == 1


def test_it_migrates_only_where_there_is_something_to_migrate(tmp_path: Path) -> None:
    prepared(tmp_path / "token")
    with CaptureQueriesContext(connection) as asked:
        prepared(tmp_path / "token")
    assert not [each["sql"] for each in asked if "auth_permission" in each["sql"]], "`migrate` asks for all of them"


def test_it_says_whether_there_is_a_cluster_to_watch(tmp_path: Path) -> None:
    Cluster.objects.create(name="lab", kind="kubernetes", created_at=timezone.now())
    assert prepared(tmp_path / "token") == "yes"


def test_a_command_begins_without_what_serves_pages_and_services() -> None:
    """It is on the way of every start; they take more than all the rest of its imports."""
    begun = "import django, sys; django.setup(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", begun], capture_output=True, text=True, timeout=60, check=True, cwd=PLATFORM
    )
    heavy = {"numpy", "rest_framework.fields", "drf_spectacular.plumbing", "deployments.services"}
    assert heavy.isdisjoint(done.stdout.split())
