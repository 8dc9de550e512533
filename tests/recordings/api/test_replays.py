from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from tests.deployments._support.platform import Platform
from tests.deployments._support.replays import Scene

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/replays"


@pytest.fixture
def scene(platform: Platform, settings: Settings, tmp_path: Path) -> Scene:
    settings.RECORDINGS_FOLDER = tmp_path / "recordings"
    return Scene(platform)


def test_start_look_and_the_report_in_the_end(scene: Scene, api: Api) -> None:
    started = api(Scope.WRITE).post(URL, {"version": "2", "recording": scene.recording.pk})
    assert started.status_code == 201, started.json()
    shown = started.json()
    assert (shown["status"], shown["version"], shown["total"], shown["comparison"]) == ("PENDING", 2, 30, None)
    one = f"{URL}/{shown['id']}"
    row = scene.start()
    scene.make(row)
    scene.answers(lambda recorded: recorded)
    ended = api(Scope.READ).get(f"{URL}/{row.pk}").json()
    assert (ended["status"], ended["done"], ended["comparison"]["pairs"]) == ("DONE", 30, 30)
    assert ended["comparison"]["measurement"]["verdict"] == "Successful"
    assert ended["comparison"]["outputs"][0]["kinds"] == {"Equal": 30}
    assert api(Scope.READ).get(one).json() == shown
    assert [each["id"] for each in api(Scope.READ).get(URL).json()["results"]] == [row.pk, shown["id"]]
    assert AuditEntry.objects.filter(action="replay.start").count() == 2


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        pytest.param({}, 400, "version", id="no version"),
        pytest.param({"version": "two"}, 400, "version", id="no version's form"),
        pytest.param({"version": "9"}, 404, None, id="unknown version"),
        pytest.param({"version": "2", "recording": 999}, 404, None, id="unknown recording"),
        pytest.param({"version": "2", "recordings": 1}, 400, "recordings", id="misspelt"),
        pytest.param({"version": "2", "comparison": {"minPairs": 0}}, 400, "comparison.minPairs", id="terms"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    scene: Scene, api: Api, body: dict[str, object], status: int, field: str | None
) -> None:
    answer = api(Scope.WRITE).post(URL, body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


def test_readers_may_look_and_not_start(scene: Scene, api: Api) -> None:
    assert api(Scope.READ).post(URL, {"version": "2"}).status_code == 403
    assert api(Scope.READ).get(URL).status_code == 200


def test_the_number_of_queries_does_not_depend_on_how_many_there_are(scene: Scene, api: Api) -> None:
    reader = api(Scope.READ)
    reader.get(URL)  # the token's first use is noted
    counts = []
    for _ in range(2):
        scene.make(scene.start())
        with CaptureQueriesContext(connection) as counted:
            assert reader.get(URL).status_code == 200
        counts.append(len(counted))
    assert counts[0] == counts[1]
