"""Every list of the API takes the filters and orderings that its OpenAPI document names, and refuses others."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.uris import parse_prefixes
from deployments.models import InferenceService
from events.services.subscriptions import webhook_test
from fleet.models import FleetUpgrade, ServiceUpgrade
from registry.services import alias_set
from registry.services.imports import import_request
from sealed_secrets.services import secret_create
from tests import scenes

pytestmark = pytest.mark.django_db
NAMES = {"team": "default", "namespace": "default", "name": "digits", "number": "1"}
VALUES = {"integer": "1", "date-time": "2026-01-31T12:00:00Z", "string": "x", "array": "key=value"}


@cache
def lists() -> dict[str, list[dict[str, Any]]]:
    """Return the path of every list with its query parameters."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    found = {path: item["get"].get("parameters", []) for path, item in schema["paths"].items() if "get" in item}
    queries = {path: [one for one in parameters if one["in"] == "query"] for path, parameters in found.items()}
    return {path: query for path, query in queries.items() if any(one["name"] == "cursor" for one in query)}


@pytest.fixture(scope="module")
def hook(standing_rows: Callable[[], AbstractContextManager[None]]) -> int:
    """Make two of everything that is listed; returns the key of the webhook."""
    with standing_rows(), override_settings(IMPORT_FROM=parse_prefixes(["https://a.example"])):
        live = scenes.service()
        scenes.rollout(live)
        now = live.created_at
        alias_set(model="digits", name="champion", number=1, now=now, actor="test")
        alias_set(model="digits", name="other", number=1, now=now, actor="test")
        scenes.service("another")
        scenes.model_pool("pooled", "other", name="cold")
        scenes.model_pool("in-warm", "too")
        for model in ("default.cold", "default.warm"):
            alias_set(model=model, name="champion", number=1, now=now, actor="test")
        for namespace in ("default", "other"):
            secret_create(namespace=namespace, name="hub", values={"token": "t"}, actor="test", now=now)
        for _ in range(2):
            import_request(model="digits", uri="https://a.example/digits.onnx", now=now, actor="test")
        for _ in range(2):
            scenes.tuning()
        upgraded = FleetUpgrade.objects.create(percent=20, at_once=5, created_at=now, created_by="test")
        FleetUpgrade.objects.create(percent=20, at_once=5, created_at=now, created_by="test", is_open=None)
        for service in InferenceService.objects.all():
            ServiceUpgrade.objects.create(upgrade=upgraded, service=service, wave=1, changes="image a -> b")
        made = scenes.webhook().webhook
        for _ in range(2):
            webhook_test(webhook_id=made.pk, teams=None, actor="test", now=now)
        return int(made.pk)


@pytest.fixture
def ask(hook: int, api: Callable[..., APIClient]) -> Callable[..., Any]:
    client = api(Scope.ADMIN)
    client.post("/api/v1/tokens", {"name": "second"})

    def get(path: str, query: dict[str, str]) -> Any:
        cluster = {"name": "local"} if "/clusters/" in path else {}
        upgrade = FleetUpgrade.objects.order_by("id").first()
        ids = {"webhook_id": hook, "upgrade_id": 0 if upgrade is None else upgrade.pk}
        pool = {"name": "warm"} if "/model-pools/" in path else {}
        return client.get(path.format(**{**NAMES, **cluster, **pool, **ids}), query)

    return get


def values(schema: dict[str, Any]) -> list[str]:
    """Return values that the parameter takes, all of them where it names them."""
    return schema.get("enum") or [VALUES[schema.get("format", schema["type"])]]


@pytest.mark.parametrize("path", lists())
def test_what_the_document_names_is_taken(path: str, ask: Callable[..., Any]) -> None:
    for parameter in lists()[path]:
        if parameter["name"] != "cursor":
            for value in values(parameter["schema"]):
                answer = ask(path, {parameter["name"]: value})
                assert answer.status_code == 200, (parameter["name"], value, answer.content)


@pytest.mark.parametrize("path", lists())
def test_every_order_walks_over_all_rows_once(path: str, ask: Callable[..., Any]) -> None:
    (ordering,) = [one for one in lists()[path] if one["name"] == "ordering"]
    everything = ask(path, {}).json()["results"]
    for order in ordering["schema"]["enum"]:
        rows, following = [], ask(path, {"ordering": order, "limit": "1"}).json()
        rows += following["results"]
        while following["next"]:
            query = following["next"].split("cursor=")[1].split("&")[0].replace("%3D", "=")
            following = ask(path, {"ordering": order, "limit": "1", "cursor": query}).json()
            rows += following["results"]
        assert sorted(map(str, rows)) == sorted(map(str, everything)), order


@pytest.mark.parametrize("path", lists())
@pytest.mark.parametrize("query", [{"colour": "red"}, {"ordering": "colour"}, {"limit": "0"}, {"cursor": "x"}])
def test_what_the_document_does_not_name_is_refused(path: str, query: dict[str, str], ask: Callable[..., Any]) -> None:
    answer = ask(path, query)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, next(iter(query)))


@pytest.mark.parametrize("path", lists())
def test_a_page_of_more_rows_takes_no_more_queries(path: str, ask: Callable[..., Any]) -> None:
    counts = []
    for limit in ("1", "1", "2"):  # the first time, what is remembered within a process is asked for
        with CaptureQueriesContext(connection) as queries:
            answer = ask(path, {"limit": limit})
        assert answer.status_code == 200
        counts.append(len(queries))
    assert counts[2] <= counts[1]
