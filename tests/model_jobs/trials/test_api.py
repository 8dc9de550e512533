"""Trials over the API, and the request that a pod of one fetches."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from deployments.api.workloads import access
from integrations.clusters.base import JobIdentity, WorkloadIdentity
from jobs.services.claim import begin, end
from jobs.services.claim_renewal import LEASE
from model_jobs.models import Trial
from model_jobs.trials.domain.order import Tried
from model_jobs.trials.services import TRIAL
from tests import scenes
from tests.deployments._support.fakes import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., APIClient]
URL = "/api/v1/models/digits/versions/1/trials"
REQUEST = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 4], "data": [1, 2.5, 3, 4]}]}
ANSWER = {"outputs": [{"name": "label", "datatype": "INT64", "shape": [1], "data": [7]}]}


@pytest.fixture(autouse=True)
def service() -> None:
    scenes.service()


def test_start_look_and_stop(api: Api) -> None:
    started = api(Scope.WRITE).post(URL, {"request": REQUEST}, format="json")
    assert started.status_code == 202, started.json()
    shown = started.json()
    assert (shown["status"], shown["version"], shown["stage"], shown["report"]) == ("PENDING", 1, "", {})
    detail = {**shown, "request": REQUEST, "answer": None}
    assert api(Scope.READ).get(f"{URL}/{shown['id']}").json() == detail
    assert api(Scope.WRITE).delete(f"{URL}/{shown['id']}").status_code == 204
    assert api(Scope.READ).get(URL).json()["results"][0]["reason"] == "somebody stopped it"
    assert api(Scope.WRITE).delete(f"{URL}/{shown['id']}").status_code == 409
    assert api(Scope.READ).get(f"{URL}/999").status_code == 404
    assert AuditEntry.objects.filter(action__startswith="trial.").count() == 2


def test_the_answer_is_shown_with_its_times(api: Api) -> None:
    row = scenes.trial()
    claim = begin(TRIAL, row.pk, now=timezone.now(), lease=LEASE)
    assert claim is not None
    report = {"status": 200, "infer_ms": 0.5}
    assert end(TRIAL, claim, Tried(json.dumps(ANSWER), report), now=timezone.now())
    shown = api(Scope.READ).get(f"{URL}/{row.pk}").json()
    assert (shown["status"], shown["answer"], shown["report"]) == ("DONE", ANSWER, report)
    assert "answer" not in api(Scope.READ).get(URL).json()["results"][0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "request", id="nothing"),
        pytest.param({"request": [1]}, "request", id="no object"),
        pytest.param({"request": {"instances": []}}, "request", id="no V2"),
        pytest.param({"request": REQUEST, "service": "x"}, "service", id="unknown field"),
    ],
)
def test_what_cannot_be_tried_is_refused(api: Api, body: dict[str, object], field: str) -> None:
    answer = api(Scope.WRITE).post(URL, body, format="json")
    assert answer.status_code == 400, answer.json()
    assert answer.json()["error"]["field"] == field


def test_the_number_of_queries_does_not_depend_on_how_many_there_are(api: Api) -> None:
    reader = api(Scope.READ)
    reader.get(URL)  # the token's first use is noted
    counts = []
    for _ in range(2):
        scenes.trial()
        with CaptureQueriesContext(connection) as counted:
            assert reader.get(URL).status_code == 200
        counts.append(len(counted))
    assert counts[0] == counts[1]


class Pods:
    """A trial that is made, and pods with tokens."""

    def __init__(self) -> None:
        self.row = scenes.trial()
        claim = begin(TRIAL, self.row.pk, now=timezone.now(), lease=LEASE)
        assert claim is not None
        self.request_id = claim.order.request_id
        digest = self.row.model_version.digest
        self.cluster = FakeCluster(
            workloads={
                "pod.of.trial": JobIdentity("jobs", "fairlead-try-abc", digest, request_id=self.request_id),
                "pod.of.inspect": JobIdentity("jobs", "fairlead-inspect-abc", digest),
                "pod.of.service": WorkloadIdentity("default", "digits", "digits-1-abc"),
            }
        )

    def get(self, token: str = "pod.of.trial", cluster: str = "local") -> Any:
        return Client().get(
            f"/api/v1/clusters/{cluster}/workloads/requests/{self.request_id}",
            headers={"Authorization": f"Bearer {token}"},
        )


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pods]:
    cache.clear()
    made = Pods()
    monkeypatch.setattr(access, "driver_of", lambda _row: made.cluster)
    yield made
    cache.clear()


def test_the_pod_of_a_trial_gets_the_request_while_it_is_waited_for(pods: Pods) -> None:
    answer = pods.get()
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json()["inputs"][0]["data"] == [1, 2, 3, 4]
    Trial.objects.update(claim=None)
    assert pods.get().status_code == 404


@pytest.mark.parametrize(
    ("token", "cluster", "status"),
    [
        pytest.param("pod.of.inspect", "local", 404, id="a job that answers nothing"),
        pytest.param("pod.of.service", "local", 403, id="a replica"),
        pytest.param("not.a.known", "local", 401, id="nobody"),
        pytest.param("pod.of.trial", "elsewhere", 401, id="another cluster"),
    ],
)
def test_nobody_else_gets_it(pods: Pods, token: str, cluster: str, status: int) -> None:
    assert pods.get(token, cluster).status_code == status
