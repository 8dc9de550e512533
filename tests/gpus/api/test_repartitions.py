"""`/api/v1/clusters/NAME/repartitions`."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from gpus.models import Repartition
from gpus.services import inventory
from tests import scenes
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.fakes import FakeCluster

Api = Callable[..., APIClient]
URL = "/api/v1/clusters/gpus/repartitions"
BODY = {"demands": ["1 x 3g.40gb"]}
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Give what a cluster says of itself whose file lets nodes be cut."""
    fake = FakeCluster(gpus=(scenes.GPU_NODE,))
    monkeypatch.setattr(inventory, "driver_of", lambda _row: fake)
    document = {**CLUSTER, "name": "gpus", "repartition": {}, "patches": []}
    Cluster.objects.create(name="gpus", kind="kubernetes", document=document, created_at="2026-01-01T12:00:00Z")
    return fake


def test_propose_show_approve_abort(cluster: FakeCluster, api: Api) -> None:
    admin = api(Scope.ADMIN)
    proposed = admin.post(URL, BODY)
    assert proposed.status_code == 201, proposed.json()
    shown = proposed.json()
    one = f"{URL}/{shown['id']}"
    assert (shown["cluster"], shown["node"], shown["phase"], shown["gpus"]) == ("gpus", "gpu-1", "Proposed", [0])
    assert [len(gpu["slices"]) for gpu in shown["before"]] == [7]
    assert [(each["profile"], each["start"]) for each in shown["after"][0]["slices"]] == [
        ("1g.10gb", 0),
        ("1g.10gb", 1),
        ("1g.10gb", 2),
        ("1g.10gb", 3),
        ("3g.40gb", 4),
    ]
    assert admin.get(URL).json()["results"] == [shown] == [admin.get(one).json()]
    assert admin.post(f"{one}/approve", {"reason": "due"}).json()["phase"] == "Draining"
    assert admin.post(f"{one}/decline", {"reason": "no"}).status_code == 409
    assert admin.post(f"{one}/abort", {"reason": "busy"}).json()["abort_reason"] == "busy"


def test_the_same_request_again_gets_the_first_answer_and_asks_the_cluster_once(cluster: FakeCluster, api: Api) -> None:
    admin = api(Scope.ADMIN)
    key = {"HTTP_IDEMPOTENCY_KEY": "k1"}
    first = admin.post(URL, BODY, **key)
    cluster.away = "it does not answer"
    again = admin.post(URL, BODY, **key)
    assert (again.status_code, again.json(), again.headers["Idempotency-Replayed"]) == (201, first.json(), "true")
    assert admin.post(URL, BODY).status_code == 503
    assert Repartition.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        pytest.param({}, 400, "demands", id="nothing"),
        pytest.param({"demands": ["lots"]}, 400, "demands[0]", id="no slices"),
        pytest.param({"slices": ["1g.10gb"]}, 400, "slices", id="misspelt"),
        pytest.param({"service": "default/none"}, 404, None, id="no such service"),
        pytest.param({"demands": ["1g.10gb"]}, 409, None, id="room already"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(
    cluster: FakeCluster, api: Api, body: dict[str, object], status: int, field: str | None
) -> None:
    answer = api(Scope.ADMIN).post(URL, body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


def test_the_number_of_queries_does_not_depend_on_how_many_there_are(cluster: FakeCluster, api: Api) -> None:
    admin = api(Scope.ADMIN)
    admin.get(URL)  # the token's first use is noted
    counts = []
    for wanted in ("1 x 3g.40gb", "2 x 3g.40gb"):
        admin.post(URL, {"demands": [wanted]})
        with CaptureQueriesContext(connection) as counted:
            assert admin.get(URL).status_code == 200
        counts.append(len(counted))
    assert counts[0] == counts[1]
