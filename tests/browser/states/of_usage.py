"""Usage of services by callers, and budgets of which much or all is used."""

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from accounts.services import teams
from clusters.models import Cluster
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State
from usage.domain.budget import Limits, Owner
from usage.models import HourlyUsage, LogReading
from usage.services.budgets import budget_set

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST = "m" * 63


def _busy(_: Stage) -> str:
    now = timezone.now()
    teams.team_create(name="vision", actor="test", now=now)
    budget_set(owner=Owner.team("vision"), limits=Limits(requests=600_000, cost=2000.0), actor="test", now=now)
    Cluster.objects.update_or_create(
        name="local",
        defaults={"kind": "local", "created_at": now, "prices": {"currency": "EUR", "per_hour": {"replica": 0.5}}},
    )
    for day in range(20):
        for service, key, team in (("digits", "nightly", "vision"), (LONGEST, LONGEST, "vision"), ("digits", "", "")):
            hour = BEGIN + timedelta(days=day, hours=9)
            HourlyUsage.objects.create(
                hour=hour, namespace="default", service=service, revision="r-00001", team=team, key=key,
                requests=1000 * (day % 7 + 1) ** 2, errors=day, rows=8000 * (day % 7 + 1) ** 2,
                bytes_in=1 << 20, bytes_out=1 << 30,
                model_us=(day + 1) * 10**9, last_at=hour,
            )  # fmt: skip
    LogReading.objects.create(pk=1, lines=1000, bad=3, dropped_bytes=1 << 20, read_at=now)
    return "/usage/?month=2026-01&team=vision"


def _used_up(_: Stage) -> str:
    now = timezone.now()
    teams.team_create(name="vision", actor="test", now=now)
    hour = now.replace(minute=0, second=0, microsecond=0)
    HourlyUsage.objects.create(
        hour=hour, namespace="default", service="digits", revision="r-00001", team="vision", key="nightly",
        requests=10, rows=5000, last_at=hour,
    )  # fmt: skip
    limits = Limits(requests=100, rows=1000, is_enforced=True)
    budget_set(owner=Owner.team("vision"), limits=limits, actor="test", now=now)
    return "/usage/?team=vision"


def _used_up_by_a_service(_: Stage) -> str:
    now = timezone.now()
    scenes.service(LONGEST[:50])
    owner = Owner.service("default", LONGEST[:50])
    HourlyUsage.objects.create(
        hour=now.replace(minute=0, second=0, microsecond=0), namespace="default", service=LONGEST[:50],
        revision="r-00001", team="vision", key=LONGEST, requests=10, rows=5000, last_at=now,
    )  # fmt: skip
    budget_set(owner=owner, limits=Limits(requests=10, is_enforced=True), actor="test", now=now)
    return f"/usage/?service={owner.name}"


def _without_budget(_: Stage) -> str:
    scenes.access_key("nightly")
    return "/usage/?month=2026-01&key=nightly"


def _many(_: Stage) -> str:
    for number in range(101):
        HourlyUsage.objects.create(
            hour=BEGIN, namespace="default", service=f"service-{number}", revision="r-00001", requests=200 - number,
            last_at=BEGIN,
        )  # fmt: skip
    return "/usage/?month=2026-01"


def _busy_all(stage: Stage) -> str:
    _busy(stage)
    return "/usage/?month=2026-01"


PAGES = {
    "deployments:usage": PageStates(
        title="Usage",
        states={
            "empty": State(lambda _: "/usage/?month=2026-01", "No requests in 2026-01"),
            "busy": State(_busy, LONGEST),
            "busy-all": State(_busy_all, "no key"),
            "busy-many": State(_many, "The 100 with the most requests"),
            "busy-used-up": State(_used_up, "Used up: the gateway refuses the keys of vision"),
            "busy-service": State(_used_up_by_a_service, "Used up: the gateway refuses requests to default/"),
            "empty-key": State(_without_budget, "nightly has no budget"),
            "error": State(
                lambda _: "/usage/?month=2026-13",
                "expected one such as",
                status=400,
                title="That cannot be done as asked",
                is_refused=True,
            ),
        },
    ),
}
