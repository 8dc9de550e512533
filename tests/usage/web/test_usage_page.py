"""The page of usage: whose usage it shows, the budget of a team, and the file."""

from datetime import UTC, datetime

from django.utils import timezone

from accounts.domain.roles import Role
from accounts.services import teams
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from usage.domain.budget import Limits
from usage.models import HourlyUsage
from usage.services.budgets import budget_set

HOUR = datetime(2026, 1, 31, 23, tzinfo=UTC)
ASKED = "/usage/?month=2026-01"


def used(team: str, requests: int, service: str = "digits") -> None:
    HourlyUsage.objects.create(
        hour=HOUR, namespace="default", service=service, team=team, key=f"key-of-{team}", requests=requests,
        model_us=1_000_000, last_at=HOUR,
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


def test_the_budget_of_a_team_shows_what_is_used_of_it(browser: Browser) -> None:
    used("red", 90)
    client = browser("red", Role.VIEWER)
    assert not marked(page(client, f"{ASKED}&team=red"), "budget")
    budget_set(team="red", limits=Limits(requests=100, cost=1.0), actor="test", now=timezone.now())
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
        "2026-01-31,red,default/cards,key-of-red,6,0,0,0,1.0,,",
        "2026-01-31,red,default/digits,key-of-red,5,0,0,0,1.0,,",
    ]
