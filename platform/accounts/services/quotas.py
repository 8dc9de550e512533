"""Quotas of teams: read with what is used, and set by administrators of the installation."""

from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction

from accounts import hooks
from accounts.domain.quota import Quota, Usage
from accounts.models import Team
from accounts.services import audit_record
from accounts.services.teams import team_get


@dataclass(frozen=True, slots=True)
class TeamQuota:
    """A team's quota, and what it uses of it."""

    quota: Quota
    usage: Usage


def quota_of(team: Team) -> Quota:
    """Return the quota in a team's row."""
    return Quota(team.max_versions, team.max_bytes, team.requests_per_second, team.rows_per_minute)


def quota_get(*, team: str) -> TeamQuota:
    """Return the quota of a team and its usage; raises NotFound."""
    return quota_and_usage(team_get(name=team))


def quota_and_usage(team: Team) -> TeamQuota:
    """Return the quota in a team's row and its usage."""
    used = hooks.team_usage(team.name)
    usage = Usage(sum(each.versions for each in used), sum(each.size_bytes for each in used))
    return TeamQuota(quota_of(team), usage)


@transaction.atomic
def quota_set(*, team: str, quota: Quota, actor: str, now: datetime) -> None:
    """Set the quota of a team; existing versions stay, whatever it is. Gateways apply its rates within seconds.

    Raises NotFound.
    """
    found = Team.objects.select_for_update().filter(pk=team_get(name=team).pk).get()
    before = quota_of(found)
    if before == quota:
        return
    Team.objects.filter(pk=found.pk).update(**asdict(quota))
    audit_record(
        actor=actor,
        action="team.quota",
        target=f"teams/{team}",
        now=now,
        before=asdict(before),
        after=asdict(quota),
    )
