"""The page of usage: whose usage it shows, the budget of a team, and the file."""

from datetime import UTC, datetime

from django.utils import timezone

from accounts.domain.roles import Role
from accounts.services import teams
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from usage.domain.budget import Limits, Owner
from usage.models import Budget, Collector, HourlyUsage
from usage.services.budgets import budget_set

HOUR = datetime(2026, 1, 31, 23, tzinfo=UTC)
ASKED = "/usage/?month=2026-01"


def used(team: str, requests: int, service: str = "digits", *, hour: datetime = HOUR, revision: str = "r-1") -> None:
    HourlyUsage.objects.create(
        hour=hour, namespace="default", service=service, revision=revision, team=team, key=f"key-of-{team}",
        requests=requests, rows=3 * requests, model_us=1_000_000, last_at=hour,
    )  # fmt: skip


def test_one_sees_the_usage_of_ones_own_teams(browser: Browser) -> None:
    used("red", 5)
    used("blue", 7)
    shown = page(browser("red", Role.VIEWER), ASKED)
    assert "key-of-red" in shown
    assert "key-of-blue" not in shown
    assert "2026-01-31: 5 requests" in shown
    whole = page(browser("default", Role.ADMIN), ASKED)
    assert "2026-01-31: 12 requests" in whole


def test_another_team_is_not_there_and_nonsense_is_refused(browser: Browser) -> None:
    teams.team_create(name="blue", actor="test", now=timezone.now())
    client = browser("red", Role.VIEWER)
    assert client.get(f"{ASKED}&team=blue").status_code == 404
    assert client.get("/usage/?month=2026-1").status_code == 400
    assert b"key-of-blue" not in b"".join(client.get("/usage/export?month=2026-01&team=blue").streaming_content)


def test_a_month_without_requests_says_so(browser: Browser) -> None:
    client = browser("red", Role.VIEWER)
    used("red", 5)
    shown = page(client, "/usage/?month=2025-12")
    assert marked(shown, "no-usage")
    assert not marked(shown, "usage-total")
    assert marked(page(client, ASKED), "usage-total")


def test_the_page_says_when_requests_on_kubernetes_were_last_counted(browser: Browser) -> None:
    client = browser("red", Role.VIEWER)
    assert not marked(page(client, ASKED), "stored")
    for name, hour in (("ended", 10), ("running", 12)):
        Collector.objects.create(name=name, stored_at=datetime(2026, 1, 31, hour, tzinfo=UTC))
    assert "2026-01-31T12:00" in page(client, ASKED)
    assert marked(page(client, ASKED), "stored")


def test_the_budget_of_a_team_shows_what_is_used_of_it(browser: Browser) -> None:
    used("red", 90)
    client = browser("red", Role.VIEWER)
    assert not marked(page(client, f"{ASKED}&team=red"), "budget")
    budget_set(owner=Owner.team("red"), limits=Limits(requests=100, cost=1.0), actor="test", now=timezone.now())
    shown = page(client, f"{ASKED}&team=red")
    assert marked(shown, "budget")
    assert 'value="90"' in shown


def test_the_file_has_what_the_page_shows_by_day(browser: Browser) -> None:
    used("red", 5)
    used("red", 6, service="cards")
    answer = browser("red", Role.VIEWER).get("/usage/export?month=2026-01")
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0].startswith("day,team,service,key,requests")
    assert lines[1:] == [
        "2026-01-31,red,default/cards,key-of-red,6,0,18,0,0,1.0,,",
        "2026-01-31,red,default/digits,key-of-red,5,0,15,0,0,1.0,,",
    ]


def test_the_page_has_the_busiest_callers_and_the_file_all(browser: Browser) -> None:
    for number in range(103):
        used("red", 1000 - number, service=f"service-{number}")
    client = browser("red", Role.VIEWER)
    shown = page(client, ASKED)
    assert marked(shown, "has-more")
    assert f"{sum(range(1000 - 102, 1001)):,}" in marked(shown, "usage-total")[0]
    assert ("default/service-99<" in shown, "default/service-100<" in shown) == (True, False)
    assert b"default/service-102" in b"".join(client.get("/usage/export?month=2026-01").streaming_content)


def test_an_administrator_sets_changes_and_deletes_a_budget(browser: Browser) -> None:
    now = timezone.now()
    used("red", 90, hour=now)
    used("red", 500, hour=now, revision="")  # refused by the gateway
    client = browser("default", Role.ADMIN)
    asked = "/usage/?team=red"
    assert marked(page(client, asked), "no-budget")
    where = "/usage/budgets/team/red"
    said = {"requests": "100", "rows": "", "cost": "2.5", "change": "set"}
    assert client.post(where, said).headers["Location"] == asked
    assert Budget.objects.values_list("requests", "rows", "cost", "is_enforced").get() == (100, None, 2.5, False)
    assert not marked(page(client, asked), "used-up")
    client.post(where, {"requests": "100", "rows": "270", "enforce": "on", "change": "set"})
    assert Budget.objects.values_list("requests", "rows", "cost", "is_enforced").get() == (100, 270, None, True)
    shown = page(client, asked)
    assert marked(shown, "enforced")
    assert marked(shown, "used-up")
    for bad in (
        {"requests": "-1"},
        {"requests": "1.5"},
        {"rows": "x"},
        {"cost": "nan"},
        {"cost": "inf"},
        {"enforce": "on"},
    ):
        assert client.post(where, {**bad, "change": "set"}).status_code == 400
    client.post(where, {"requests": "100", "change": "delete"})
    assert not Budget.objects.exists()


def test_others_see_no_form_and_may_not_set_it(browser: Browser) -> None:
    client = browser("red", Role.ADMIN)
    shown = page(client, f"{ASKED}&team=red")
    assert not marked(shown, "budget")
    assert client.post("/usage/budgets/team/red", {"requests": "1", "change": "set"}).status_code == 403
    assert not Budget.objects.exists()


def test_a_page_of_a_key_or_a_service_shows_and_sets_its_budget(browser: Browser) -> None:
    scenes.service()
    scenes.access_key("ci", team="default")
    client = browser("default", Role.ADMIN)
    for narrowed, where in (
        ("key=ci", "/usage/budgets/key/ci"),
        ("service=default/digits", "/usage/budgets/service/default/digits"),
    ):
        assert marked(page(client, f"/usage/?{narrowed}"), "no-budget")
        answer = client.post(where, {"requests": "100", "enforce": "on", "change": "set"})
        assert answer.headers["Location"] == f"/usage/?{narrowed}"
        shown = page(client, f"/usage/?{narrowed}")
        assert marked(shown, "enforced")
        assert f'action="{where}"' in shown
        assert not marked(shown, "no-budget")
    assert set(Budget.objects.values_list("key", "service")) == {("ci", None), (None, "default/digits")}
    # The key's, of all that the page is narrowed by.
    assert "/usage/budgets/key/ci" in page(client, "/usage/?key=ci&service=default/digits&team=default")


def test_what_has_no_budget_shows_its_usage_alone(browser: Browser) -> None:
    used("", 5, service="gone")
    HourlyUsage.objects.update(key="fairlead-console")
    client = browser("default", Role.ADMIN)
    for narrowed in ("key=fairlead-console", "service=default/gone", "service=gone"):
        shown = page(client, f"{ASKED}&{narrowed}")
        assert not marked(shown, "budget")
        assert bool(marked(shown, "usage-total")) == (narrowed != "service=gone")
    for wrong in ("pool/a", "service/digits", "key/a/b", "key/fairlead-console", "service/default/gone"):
        assert client.post(f"/usage/budgets/{wrong}", {"requests": "1", "change": "set"}).status_code == 404
    assert not Budget.objects.exists()


def test_keys_of_others_have_no_budget_on_the_page(browser: Browser) -> None:
    teams.team_create(name="blue", actor="test", now=timezone.now())
    scenes.access_key("batch", team="blue")
    used("blue", 7)
    budget_set(owner=Owner.key("batch"), limits=Limits(requests=7), actor="test", now=timezone.now())
    client = browser("red", Role.ADMIN)
    for name in ("batch", "none"):
        shown = page(client, f"{ASKED}&key={name}")
        assert marked(shown, "no-usage")
        assert not marked(shown, "budget")
        assert client.post(f"/usage/budgets/key/{name}", {"requests": "1", "change": "set"}).status_code == 404
