"""A replica brings what its tap recorded; nobody else does, and nothing else is taken."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from common.errors import Conflict
from deployments.api.workloads import access, exchanges
from integrations.clusters.base import WorkloadIdentity
from tests import scenes
from tests.common._support.asgi_client import Client as AsgiClient
from tests.deployments._support.fakes import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)
IDENTITY = WorkloadIdentity("default", "digits", "digits-00001-abc-1")
TOKEN = "pod.of.digits"
BODY = b'[{"id": "a:0"}]'


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    fake = FakeCluster(workloads={TOKEN: IDENTITY})
    for module in (access, exchanges):
        monkeypatch.setattr(module, "driver_of", lambda _row: fake)
    scenes.service("digits", 1)
    cache.clear()
    yield fake
    cache.clear()


def bring(body: bytes = BODY, content_type: str = exchanges.MEDIA_TYPE, token: str = TOKEN) -> Any:
    address = "/api/v1/clusters/local/workloads/exchanges"
    return Client().post(address, body, content_type, headers={"Authorization": f"Bearer {token}"})


def test_what_a_replica_brings_is_kept_as_its_own(cluster: FakeCluster) -> None:
    answer = bring()
    assert (answer.status_code, answer.content) == (204, b"")
    assert cluster.brought == [(IDENTITY, BODY)]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param({"token": "not.a.known"}, 401, id="a token that the cluster does not know"),
        pytest.param({"content_type": "application/json"}, 415, id="something else"),
        pytest.param({"body": b'{"id": "a:0"}'}, 400, id="one event"),
        pytest.param({"body": b"events"}, 400, id="no JSON"),
    ],
)
def test_what_is_refused(cluster: FakeCluster, asked: dict[str, Any], status: int) -> None:
    answer = bring(**asked)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
    assert cluster.brought == []


def test_where_nothing_is_recorded_a_replica_is_told_so(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(*_: object) -> None:
        raise Conflict("nothing of digits-00001 is recorded now")

    monkeypatch.setattr(cluster, "keep", keep)
    assert bring().status_code == 409


def test_a_cluster_that_is_away_is_worth_another_try(cluster: FakeCluster) -> None:
    assert bring().status_code == 204
    cluster.away = "the API server does not answer"
    assert bring().status_code == 503


@pytest.mark.parametrize(
    ("pieces", "status", "taken"),
    [pytest.param(8, 204, 8, id="large"), pytest.param(50, 413, 33, id="too large, and read no further")],
)
async def test_large_bodies_are_read_as_far_as_is_allowed(
    cluster: FakeCluster, pieces: int, status: int, taken: int
) -> None:
    client = AsgiClient(b"[" + b" " * ((1 << 20) - 1), *[b" " * (1 << 20)] * (pieces - 1))
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": exchanges.MEDIA_TYPE,
        "Content-Length": str(pieces << 20),
    }
    answer = await client.ask("POST", "/api/v1/clusters/local/workloads/exchanges", headers)
    assert (answer[0], client.taken) == (status, taken)
    assert [len(events) for _, events in cluster.brought] == ([pieces << 20] if status == 204 else [])
