"""Prices by the hour, by API and by service."""

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_local_made
from clusters.services.prices import cluster_prices_set
from common.errors import InvalidInput, NotFound
from tests import scenes

pytestmark = pytest.mark.django_db
PRICES = {"currency": "EUR", "per_hour": {"nvidia.com/gpu": 2.5, "replica": 0.05}}


@pytest.fixture(autouse=True)
def _local() -> None:
    cluster_local_made(now=timezone.now())


def set_prices(document: object) -> Cluster:
    return cluster_prices_set(name="local", document=document, actor="alice", now=timezone.now())


def test_they_are_kept_and_audited_once() -> None:
    set_prices(PRICES)
    set_prices(PRICES)
    assert Cluster.objects.get().prices == PRICES
    assert AuditEntry.objects.filter(action="cluster.prices", target="clusters/local", actor="alice").count() == 1


def test_what_is_left_out_has_no_price_any_more() -> None:
    set_prices(PRICES)
    set_prices({"currency": "EUR", "per_hour": {"replica": 0.07}})
    assert Cluster.objects.get().prices == {"currency": "EUR", "per_hour": {"replica": 0.07}}
    set_prices({"per_hour": {}})
    assert Cluster.objects.get().prices == {}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param({"currency": "EUR"}, "per_hour", id="no prices"),
        pytest.param({"per_hour": {"replica": 1}}, "currency", id="no currency"),
        pytest.param({"currency": "x" * 13, "per_hour": {}}, "currency", id="no currency but a sentence"),
        pytest.param({"currency": "EUR", "per_hour": {"replica": -1}}, "per_hour.replica", id="below nothing"),
        pytest.param({"currency": "EUR", "per_hour": {"replica": "a lot"}}, "per_hour.replica", id="no number"),
        pytest.param({"currency": "EUR", "per_hour": {"gpu": 1}}, "per_hour", id="no resource"),
        pytest.param({"currency": "EUR", "per_hour": {}, "per_day": {}}, "per_day", id="an unknown field"),
    ],
)
def test_what_they_cannot_be_is_refused_by_name(document: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        set_prices(document)
    assert refused.value.field == field
    assert Cluster.objects.get().prices == {}


def test_an_unknown_cluster_has_none() -> None:
    with pytest.raises(NotFound):
        cluster_prices_set(name="edge", document=PRICES, actor="alice", now=timezone.now())


def test_the_api_gives_what_it_took() -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {scenes.token(Scope.ADMIN)}")
    address = "/api/v1/clusters/local/prices"
    assert client.get(address).json() == {"currency": "", "per_hour": {}}
    assert client.put(address, PRICES, format="json").json() == PRICES
    assert client.get(address).json() == PRICES
