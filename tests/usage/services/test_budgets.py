"""Budgets of keys and of services beside those of teams: what counts, what gateways are sent, who gets notice; and
the release before on the same tables."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from access.services.gateways import caller_keys
from access.services.keys import key_revoke
from accounts.domain.roles import Owned
from accounts.models import AuditEntry, Team
from accounts.services import teams
from common.errors import InvalidInput, NotFound
from control_plane.monitoring.collector import ControlPlaneCollector
from deployments.models import InferenceService
from events.models import WebhookDelivery
from tests import scenes
from usage.domain.budget import Limits, Owner
from usage.domain.month import Month
from usage.models import Budget, BudgetNotice, HourlyUsage
from usage.selectors.budgets import limits_of, used_by_each
from usage.services.budgets import budget_set, budgets_check

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
KEY, SERVICE = Owner.key("ci"), Owner.service("default", "digits")
QUOTA = Limits(rows=100, is_enforced=True)


@pytest.fixture(autouse=True)
def named() -> None:
    """Make team red with the key `ci` and the namespace of service `default/digits`, and another key."""
    scenes.service()
    teams.team_create(name="red", actor="test", now=NOW)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=NOW)
    for key in ("ci", "other"):
        scenes.access_key(key, team="red")


def used(rows: int, key: str = "ci", service: str = "digits", *, revision: str = "r-1") -> None:
    HourlyUsage.objects.create(
        hour=NOW.replace(minute=0), namespace="default", service=service, revision=revision,
        team="red" if key else "", key=key, token_id=str(HourlyUsage.objects.count()), requests=1,
        rows=rows, last_at=NOW,
    )  # fmt: skip


def set_to(owner: Owner, limits: Limits) -> None:
    budget_set(owner=owner, limits=limits, actor="test", now=NOW)


def sent(now: datetime = NOW) -> tuple[tuple[str, ...], ...]:
    """Return the teams, keys and services that gateways refuse."""
    keys = caller_keys(now=now)
    return keys.exhausted, keys.exhausted_keys, keys.exhausted_services


NONE: tuple[tuple[str, ...], ...] = ((), (), ())
PREVIEWED = ("default/digits", "default/digits-preview")


@pytest.mark.parametrize(
    ("owner", "refused"),
    [(Owner.team("red"), (("red",), (), ())), (KEY, ((), ("ci",), ())), (SERVICE, ((), (), PREVIEWED))],
    ids=str,
)
def test_a_used_quota_is_refused_until_it_is_raised_no_quota_or_the_month_ends(
    owner: Owner, refused: tuple[tuple[str, ...], ...]
) -> None:
    scenes.webhook("BudgetUsed")
    set_to(owner, QUOTA)
    used(99)
    used(500, "", "")  # of another service, without a key
    used(500, "ci", revision="")  # refused by the gateway
    budgets_check(now=NOW)
    assert sent() == NONE
    used(1)
    for _ in range(2):
        budgets_check(now=NOW)
        assert sent() == refused
    assert sent(NOW + timedelta(minutes=1)) == NONE, "another month"
    notices = [each.payload for each in WebhookDelivery.objects.order_by("pk")]
    assert [(each["percent"], each[owner.kind.value]) for each in notices] == [(80, owner.name), (100, owner.name)]
    assert notices[1]["message"] == (
        f"{owner} used 100 % of its budget of 100 rows in 2026-01; the gateway refuses {owner.refused} until the month "
        "ends or the budget is raised"
    )
    set_to(owner, Limits(rows=101, is_enforced=True))
    assert sent() == NONE
    set_to(owner, QUOTA)
    assert sent() == refused
    set_to(owner, Limits(rows=100))
    assert sent() == NONE
    set_to(owner, Limits())
    assert (limits_of(owner), Budget.objects.count()) == (Limits(), 0)
    assert {each.action for each in AuditEntry.objects.filter(target=f"{owner.kind}s/{owner.name}")} >= {
        f"{owner.kind}.budget"
    }
    budgets_check(now=NOW + timedelta(minutes=1))
    assert BudgetNotice.objects.exclude(month=date(2026, 1, 1)).count() == 0


def test_each_budget_counts_its_own_and_all_cost_one_query_a_kind(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    scenes.service("cards")
    used(1)
    used(2, "other")
    used(4, service="cards")
    used(8, "other", "digits-preview")
    used(16, "", "digits")
    owners = [Owner.team("red"), Owner.key("ci"), Owner.key("other"), SERVICE, Owner.service("default", "cards")]
    for owner in owners:
        set_to(owner, Limits(rows=10**6))
    with django_assert_num_queries(3 + 3):  # the prices are read with each
        found = used_by_each(owners, Month.of(NOW))
    assert {owner.name: line.rows for owner, line in found.items()} == {
        "red": 15,
        "ci": 5,
        "other": 10,
        "default/digits": 27,
        "default/cards": 4,
    }


def test_notice_goes_to_the_team_of_the_key_and_of_the_namespace() -> None:
    teams.team_create(name="blue", actor="test", now=NOW)
    for team in ("red", "blue"):
        scenes.webhook("BudgetUsed", team=team)
    for owner in (KEY, SERVICE):
        set_to(owner, Limits(rows=100))
    used(100)
    budgets_check(now=NOW)
    deliveries = WebhookDelivery.objects.select_related("webhook__team")
    assert {each.webhook.team.name for each in deliveries if each.webhook.team} == {"red"}
    owners = sorted([name for name in ("team", "key", "service") if name in each.payload] for each in deliveries)
    assert owners == [["key"], ["key"], ["service"], ["service"]]


def test_the_budget_of_a_service_is_that_of_the_next_one_of_its_name() -> None:
    set_to(SERVICE, QUOTA)
    InferenceService.objects.all().delete()
    assert limits_of(SERVICE) == QUOTA
    used(100)
    budgets_check(now=NOW)
    assert sent()[2] == PREVIEWED
    set_to(SERVICE, Limits())
    with pytest.raises(NotFound, match="there is no service default/digits"):
        set_to(SERVICE, QUOTA)


def test_a_revoked_key_is_not_sent_once_more_and_unknown_owners_have_none() -> None:
    set_to(KEY, QUOTA)
    used(100)
    budgets_check(now=NOW)
    key_revoke(name="ci", actor="test", now=NOW)
    assert sent() == NONE
    for owner in (Owner.key("nightly"), Owner.team("green"), Owner.service("other", "digits")):
        with pytest.raises(NotFound):
            set_to(owner, QUOTA)
    with pytest.raises(InvalidInput, match="cannot be enforced"):
        set_to(Owner.key("other"), Limits(is_enforced=True))


@pytest.mark.parametrize("columns", [{}, {"key": "ci", "service": "default/digits"}])
def test_a_row_is_of_one_owner(columns: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Budget.objects.create(**columns)
    with pytest.raises(IntegrityError), transaction.atomic():
        BudgetNotice.objects.create(**columns, month=NOW.date(), measure="rows", percent=80, at=NOW)


def test_the_metric_names_the_owner() -> None:
    set_to(KEY, Limits(rows=100))
    set_to(SERVICE, Limits(rows=100))
    HourlyUsage.objects.create(
        hour=timezone.now(), namespace="default", service="digits", revision="r", key="ci", rows=80,
        last_at=timezone.now(),
    )  # fmt: skip
    budgets_check(now=timezone.now())
    (family,) = [each for each in ControlPlaneCollector().collect() if each.name == "fairlead_budget_used_percent"]
    labels = [
        {name: value for name, value in each.labels.items() if value and name != "measure"} for each in family.samples
    ]
    assert sorted(labels, key=str) == [{"key": "ci"}, {"namespace": "default", "service": "digits"}]


def test_the_release_before_reads_and_writes_budgets_of_teams_beside_them() -> None:
    for owner in (Owner.team("red"), KEY, SERVICE):
        set_to(owner, QUOTA)
    used(100)
    budgets_check(now=NOW)
    old = MigrationLoader(connection).project_state([("usage", "0002_rows_and_quotas")]).apps
    budgets, notices = (old.get_model("usage", name).objects for name in ("Budget", "BudgetNotice"))
    # What `budgets_check`, `teams_over_quota` and `budget_percents` of that release ask.
    assert [each.team.name for each in budgets.select_related("team")] == ["red"]
    over = budgets.filter(is_enforced=True, used_up_in=date(2026, 1, 1)).order_by("team__name")
    assert list(over.values_list("team__name", flat=True)) == ["red"]
    assert {each.team.name for each in notices.order_by("percent").select_related("team")} == {"red"}
    # What it writes, which this release reads.
    blue = Team.objects.create(name="blue", created_at=NOW)
    budgets.update_or_create(team_id=blue.pk, defaults={"requests": 5, "used_up_in": None})
    notices.get_or_create(team_id=blue.pk, month=date(2026, 1, 1), measure="rows", percent=80, defaults={"at": NOW})
    assert limits_of(Owner.team("blue")) == Limits(requests=5)
    budgets_check(now=NOW)
