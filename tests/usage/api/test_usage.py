"""Usage and budgets over the API: who sees what, grouping, CSV, costs, and notices that come once."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from access.services.gateways import caller_keys
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams
from clusters.models import Cluster
from events.models import WebhookDelivery
from tests import scenes
from usage.domain.budget import Limits, Owner
from usage.models import Budget, BudgetNotice, HourlyUsage
from usage.services.budgets import budget_set, budgets_check

pytestmark = pytest.mark.django_db
HOUR = datetime(2026, 1, 31, 23, tzinfo=UTC)


def used(
    team: str = "red",
    key: str = "ci",
    *,
    hour: datetime = HOUR,
    requests: int = 10,
    service: str = "digits",
    accelerator: str = "",
) -> None:
    HourlyUsage.objects.create(
        hour=hour, namespace="default", service=service, revision=f"{service}-00001", team=team, key=key,
        token_id="t", requests=requests, errors=1, rows=2 * requests, bytes_in=5, bytes_out=7,
        model_us=requests * 3_600_000,
        accelerator=accelerator, last_at=hour,
    )  # fmt: skip


@pytest.fixture
def red(api: Callable[..., APIClient]) -> APIClient:
    """Return the client of a viewer of team red."""
    api(Scope.ADMIN)  # the first user administers the installation
    now = timezone.now()
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=now)
    client = api(Scope.READ, "rita")
    teams.member_set(team="default", username="rita", role=Role.VIEWER, actor="test", now=now)
    teams.member_set(team="red", username="rita", role=Role.VIEWER, actor="test", now=now)
    return client


def test_callers_see_their_teams_and_administrators_all(red: APIClient, api: Callable[..., APIClient]) -> None:
    for team, key in (("red", "ci"), ("blue", "batch"), ("", "")):
        used(team, key)
    lines = red.get("/api/v1/usage?month=2026-01").json()["lines"]
    assert [(each["team"], each["key"], each["service"]) for each in lines] == [("red", "ci", "default/digits")]
    assert red.get("/api/v1/usage?month=2026-01&team=blue").json()["lines"] == []
    assert "batch" not in _text(red, "/api/v1/usage/export?month=2026-01")
    whole = api(Scope.ADMIN).get("/api/v1/usage?month=2026-01&by=team").json()["lines"]
    assert [each["team"] for each in whole] == ["", "blue", "red"]


def test_usage_by_what_is_asked(red: APIClient) -> None:
    used()
    used(key="nightly")
    used(hour=HOUR - timedelta(hours=1))
    used(service="cards")
    used(hour=HOUR + timedelta(hours=1))

    def lines(query: str) -> list[tuple[object, ...]]:
        found = red.get(f"/api/v1/usage?month=2026-01&{query}").json()["lines"]
        return [
            (*[value for name, value in each.items() if isinstance(value, str)], each["requests"]) for each in found
        ]

    assert lines("by=key") == [("ci", 30), ("nightly", 10)]
    assert lines("by=day") == [("2026-01-31", 40)]
    assert lines("by=hour&service=default/digits") == [("2026-01-31T22:00Z", 10), ("2026-01-31T23:00Z", 20)]
    assert lines("by=revision,key&key=ci") == [("cards-00001", "ci", 10), ("digits-00001", "ci", 20)]
    assert red.get("/api/v1/usage?month=2026-02").json()["lines"][0]["requests"] == 10
    first = red.get("/api/v1/usage?month=2026-02").json()["lines"][0]
    assert (first["errors"], first["rows"], first["bytes_in"], first["bytes_out"]) == (1, 20, 5, 7)
    assert first["model_seconds"] == 36.0
    for bad in ("month=2026-13", "month=x", "by=user", "month=2026-01%0A", "service=digits"):
        refused = red.get(f"/api/v1/usage?{bad}")
        assert refused.status_code == 400
        assert refused.json()["error"]["field"] == bad.partition("=")[0]


def test_cost_is_time_of_replicas_at_the_price_of_their_kind(red: APIClient) -> None:
    used(requests=1000)
    used(requests=1000, service="cards", accelerator="nvidia.com/gpu")
    asked = "/api/v1/usage?month=2026-01&by=service"
    assert [each["cost"] for each in red.get(asked).json()["lines"]] == [None, None]
    Cluster.objects.update_or_create(
        name="local",
        defaults={"kind": "local", "created_at": HOUR, "prices": {"currency": "EUR", "per_hour": {"replica": 0.5}}},
    )
    assert [each["cost"] for each in red.get(asked).json()["lines"]] == [None, 0.5]
    assert red.get("/api/v1/usage?month=2026-01&by=team").json()["lines"][0]["cost"] is None
    Cluster.objects.update(prices={"currency": "EUR", "per_hour": {"replica": 0.5, "nvidia.com/gpu": 2.0}})
    assert [each["cost"] for each in red.get(asked).json()["lines"]] == [2.0, 0.5]
    assert red.get(asked).json()["currency"] == "EUR"


def test_without_a_local_cluster_the_only_one_has_the_prices(red: APIClient) -> None:
    used(requests=1000)
    asked = "/api/v1/usage?month=2026-01&by=service"
    priced = {"kind": "kubernetes", "created_at": HOUR, "prices": {"currency": "EUR", "per_hour": {"replica": 0.5}}}
    Cluster.objects.create(name="here", **priced)
    assert [each["cost"] for each in red.get(asked).json()["lines"]] == [0.5]
    Cluster.objects.create(name="there", **priced)
    assert [each["cost"] for each in red.get(asked).json()["lines"]] == [None]


def test_the_file_has_no_formulas(red: APIClient) -> None:
    used(key='=HYPERLINK("http://x")')
    rows = list(csv.reader(io.StringIO(_text(red, "/api/v1/usage/export?month=2026-01"))))
    assert rows[0][:4] == ["team", "service", "key", "requests"]
    assert rows[1][:4] == ["red", "default/digits", '\'=HYPERLINK("http://x")', "10"]


def test_a_budget_is_set_by_administrators_and_noted(red: APIClient, api: Callable[..., APIClient]) -> None:
    used(hour=timezone.now())
    admin = api(Scope.ADMIN)
    assert red.put("/api/v1/teams/red/budget", {"requests": 5, "cost": None}).status_code == 403
    assert red.get("/api/v1/teams/blue/budget").status_code == 404
    shown = admin.put("/api/v1/teams/red/budget", {"requests": 100, "cost": None}).json()
    assert (shown["requests"], shown["cost"], shown["used_requests"]) == (100, None, 10)
    assert red.get("/api/v1/teams/red/budget").json() == shown
    for bad in (
        {"requests": 0, "cost": None},
        {"requests": 1.5, "cost": None},
        {"cost": None},
        {"requests": None, "cost": "x"},
    ):
        assert admin.put("/api/v1/teams/red/budget", bad).status_code == 400
    admin.put("/api/v1/teams/red/budget", {"requests": None, "cost": None})
    assert AuditEntry.objects.filter(action="team.budget", target="teams/red").count() == 2


def test_notice_is_given_once_for_each_share_of_a_month(red: APIClient, api: Callable[..., APIClient]) -> None:
    scenes.webhook("BudgetUsed")
    now = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
    admin = api(Scope.ADMIN)
    admin.put("/api/v1/teams/red/budget", {"requests": 100, "cost": None})
    used(requests=79)
    used("blue", requests=500)
    budgets_check(now=now)
    assert _messages() == []
    HourlyUsage.objects.filter(team="red").update(requests=80)
    for _ in range(3):
        budgets_check(now=now)
    assert _messages() == ["team red used 80 % of its budget of 100 requests in 2026-01"]
    HourlyUsage.objects.filter(team="red").update(requests=250)
    for _ in range(3):
        budgets_check(now=now)
    assert _messages()[1:] == ["team red used 100 % of its budget of 100 requests in 2026-01"]
    budgets_check(now=now + timedelta(minutes=1))
    assert len(_messages()) == 2, "February has its own budget, of which nothing is used"
    used(hour=HOUR + timedelta(hours=1), requests=90)
    budgets_check(now=now + timedelta(hours=1))
    assert _messages()[2:] == ["team red used 80 % of its budget of 100 requests in 2026-02"]
    assert BudgetNotice.objects.count() == 3


def test_webhooks_of_a_team_get_notices_of_its_budget_only(red: APIClient, api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    for team in ("red", "blue"):
        body = {"url": f"https://example.com/{team}", "events": ["BudgetUsed"], "team": team}
        assert client.post("/api/v1/webhooks", body).status_code == 201
    client.put("/api/v1/teams/red/budget", {"requests": 1, "cost": None})
    used(hour=timezone.now().replace(minute=0))
    budgets_check(now=timezone.now())
    assert {each.webhook.team.name for each in WebhookDelivery.objects.all() if each.webhook.team} == {"red"}
    assert sorted(each.payload["percent"] for each in WebhookDelivery.objects.all()) == [80, 100]


def _messages() -> list[str]:
    return [each.payload["message"] for each in WebhookDelivery.objects.order_by("pk")]


def _text(client: APIClient, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith("attachment")
    return b"".join(answer.streaming_content).decode()


def test_a_budget_that_is_enforced_is_a_quota_until_it_is_raised_or_the_month_ends(
    red: APIClient, api: Callable[..., APIClient]
) -> None:
    scenes.webhook("BudgetUsed")
    now = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
    admin, where = api(Scope.ADMIN), "/api/v1/teams/red/budget"
    asked = {"requests": None, "cost": None, "rows": 1000, "enforce": True}
    assert admin.put(where, asked).status_code == 200
    admin.put("/api/v1/teams/blue/budget", {"requests": 1, "cost": None})
    used("blue")
    used(requests=499)
    HourlyUsage.objects.create(
        hour=HOUR, namespace="default", service="x", team="red", rows=9, requests=9, last_at=HOUR
    )
    budgets_check(now=now)
    assert refused(now) == ()
    HourlyUsage.objects.filter(team="red", key="ci").update(rows=1000)
    for _ in range(2):
        budgets_check(now=now)
        assert refused(now) == ("red",), "blue's budget is not enforced"
    assert refused(now + timedelta(minutes=1)) == (), "another month"
    (message,) = [each for each in _messages() if "100 %" in each and "red" in each]
    assert "refuses the keys of red" in message
    # raised, before the next check
    budget_set(owner=Owner.team("red"), limits=Limits(rows=2000, is_enforced=True), actor="test", now=now)
    assert refused(now) == ()
    budget_set(owner=Owner.team("red"), limits=Limits(rows=900, is_enforced=True), actor="test", now=now)
    assert refused(now) == ("red",)
    budget_set(owner=Owner.team("red"), limits=Limits(rows=900), actor="test", now=now)
    assert refused(now) == ()


def test_admins_of_the_owning_team_set_budgets_of_keys_and_services(
    red: APIClient, api: Callable[..., APIClient]
) -> None:
    scenes.service()
    now = timezone.now()
    scenes.access_key("ci", team="red")
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    used(hour=now)
    used(hour=now, key="", team="")
    root, rita, carl = api(Scope.ADMIN), red, api(Scope.ADMIN, "carl")
    teams.member_set(team="red", username="carl", role=Role.ADMIN, actor="test", now=now)
    asked = {"requests": 10, "cost": None, "rows": None, "enforce": True}
    for where, requests in (("/api/v1/keys/ci/budget", 10), ("/api/v1/services/default/digits/budget", 20)):
        assert rita.put(where, asked).status_code == 403
        shown = carl.put(where, asked).json()
        assert (shown["requests"], shown["enforce"], shown["used_up"]) == (10, True, True)
        assert shown["used_requests"] == requests
        assert rita.get(where).json() == root.get(where).json() == shown
        kept = root.put(where, {"requests": 99, "cost": None}).json()
        assert (kept["requests"], kept["enforce"], kept["used_up"]) == (99, True, False)
    for missing in ("/api/v1/keys/none/budget", "/api/v1/services/default/none/budget"):
        for answer in (root.get(missing), root.put(missing, asked)):
            assert (answer.status_code, "there is no" in answer.content.decode()) == (404, True)
    scenes.access_key("batch", team="blue")
    assert rita.get("/api/v1/keys/batch/budget").status_code == 404


def test_a_client_of_before_keeps_rows_and_enforcement(red: APIClient, api: Callable[..., APIClient]) -> None:
    admin, where = api(Scope.ADMIN), "/api/v1/teams/red/budget"
    admin.put(where, {"requests": None, "cost": None, "rows": 5, "enforce": True})
    shown = admin.put(where, {"requests": 7, "cost": None}).json()
    assert (shown["requests"], shown["rows"], shown["enforce"], shown["used_up"]) == (7, 5, True, False)
    assert admin.put(where, {"requests": None, "cost": None, "rows": None, "enforce": True}).status_code == 400
    assert admin.put(where, {"requests": None, "cost": None, "rows": None}).json()["enforce"] is False
    assert not Budget.objects.exists()


def refused(now: datetime) -> tuple[str, ...]:
    """Return the teams that gateways refuse."""
    return caller_keys(now=now).exhausted
