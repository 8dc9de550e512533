from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from deployments.models import InferenceService, Revision, Rollout
from model_jobs.models import Tuning
from tests.deployments._support.platform import Platform
from tests.deployments._support.tunings import CONFIG, Scene

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., APIClient]
URL = "/api/v1/models/digits/versions/1/tunings"


@pytest.fixture
def scene(platform: Platform) -> Scene:
    return Scene(platform)


def test_start_look_and_what_was_found_in_the_end(scene: Scene, api: Api) -> None:
    order = {"max_latency_p99_ms": 5, "budget_s": 60, "service": "default/digits", "shapes": {"x": [4]}}
    started = api(Scope.WRITE).post(URL, order, format="json")
    assert started.status_code == 202, started.json()
    shown = started.json()
    assert (shown["status"], shown["service"], shown["report"]) == ("PENDING", "default/digits", None)
    assert (shown["order"]["budget_s"], shown["order"]["shapes"]) == (60, {"x": [4]})
    scene.make(Tuning.objects.get(pk=shown["id"]))
    ended = api(Scope.READ).get(f"{URL}/{shown['id']}").json()
    assert (ended["status"], ended["plot"]) == ("DONE", "<svg/>")
    assert ended["report"]["chosen"]["config"] == CONFIG
    assert "plot" not in api(Scope.READ).get(URL).json()["results"][0]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        pytest.param({}, 400, "max_latency_p99_ms", id="no limit"),
        pytest.param({"max_latency_p99_ms": 0}, 400, "max_latency_p99_ms", id="a limit of nothing"),
        pytest.param({"max_latency_p99_ms": "nan"}, 400, "max_latency_p99_ms", id="no number"),
        pytest.param({"max_latency_p99_ms": 5, "service": "digits"}, 400, "service", id="no namespace"),
        pytest.param({"max_latency_p99_ms": 5, "service": "default/cats"}, 404, None, id="unknown service"),
        pytest.param({"max_latency_p99_ms": 5, "budget": 5}, 400, "budget", id="misspelt"),
        pytest.param({"max_latency_p99_ms": 5, "shapes": {"x": [0]}}, 400, None, id="a dimension of nothing"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    scene: Scene, api: Api, body: dict[str, object], status: int, field: str | None
) -> None:
    answer = api(Scope.WRITE).post(URL, body, format="json")
    assert answer.status_code == status
    assert field is None or answer.json()["error"]["field"] == field


def test_one_that_goes_on_can_be_stopped(scene: Scene, api: Api) -> None:
    row = scene.start()
    assert api(Scope.WRITE).delete(f"{URL}/{row.pk}").status_code == 204
    assert api(Scope.READ).get(f"{URL}/{row.pk}").json()["reason"] == "somebody stopped it"
    assert api(Scope.WRITE).delete(f"{URL}/{row.pk}").status_code == 409
    assert AuditEntry.objects.filter(action="tuning.stop").count() == 1


def test_what_was_chosen_is_applied_as_a_new_revision_that_is_rolled_out(scene: Scene, api: Api) -> None:
    row = scene.make(scene.start())
    answer = api(Scope.WRITE).post(f"{URL}/{row.pk}/apply", {}, format="json")
    assert answer.status_code == 200, answer.json()
    newest = Revision.objects.latest("id")
    assert (newest.name, newest.model_version_id) == ("digits-00002", row.model_version_id)
    assert newest.model_config == CONFIG
    assert Rollout.objects.get().to_revision == newest
    assert InferenceService.objects.get().document["spec"]["predictor"]["model"]["config"] == CONFIG
    again = api(Scope.WRITE).post(f"{URL}/{row.pk}/apply", {}, format="json")
    assert again.status_code == 409


def test_one_for_no_service_is_applied_to_the_one_that_is_named(scene: Scene, api: Api) -> None:
    row = scene.make(scene.start(service=None))
    nameless = api(Scope.WRITE).post(f"{URL}/{row.pk}/apply", {}, format="json")
    assert (nameless.status_code, nameless.json()["error"]["field"]) == (400, "service")
    named = api(Scope.WRITE).post(f"{URL}/{row.pk}/apply", {"service": "default/digits"}, format="json")
    assert named.status_code == 200, named.json()


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
