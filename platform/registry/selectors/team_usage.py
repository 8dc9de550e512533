"""Usage of a team: model versions of the models that it owns, and the bytes of their files. Read-only."""

from django.db.models import Count, Q, Sum

from accounts.domain.quota import Usage
from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.models import Ownership
from registry.models import ModelVersion


def team_usage(team: str) -> Usage:
    """Return what the versions of the team's models take; the default team has all models without another owner."""
    owned = Ownership.objects.filter(kind=Owned.MODEL.value)
    if team == DEFAULT_TEAM:
        of_team = ~Q(model__name__in=owned.exclude(team__name=DEFAULT_TEAM).values("name"))
    else:
        of_team = Q(model__name__in=owned.filter(team__name=team).values("name"))
    found = ModelVersion.objects.filter(of_team).aggregate(count=Count("pk"), size=Sum("size_bytes"))
    return Usage(found["count"], found["size"] or 0)
