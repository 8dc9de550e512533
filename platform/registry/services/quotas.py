"""Quotas of the owning team: checked before an upload's bytes come in, and when its version is registered."""

from accounts.domain.quota import Quota, refusal
from accounts.domain.roles import Owned
from accounts.models import Team
from accounts.selectors import owning_team
from accounts.services.quotas import quota_of
from common.errors import QuotaExceeded
from registry.models import ModelVersion
from registry.selectors.team_usage import team_usage

_SLACK_BYTES = 1 << 20
"""What a body has beside its files: headers of a tar archive."""


def check_quota(*, model: str, size_bytes: int) -> int | None:
    """Return how many bytes a further version of the model may have, None for any number.

    Raises:
        QuotaExceeded: the team that owns the model has no room for one of `size_bytes`.
    """
    found = _limited(model)
    return None if found is None else _check(*found, size_bytes=size_bytes)


def check_quota_locked(*, model: str, size_bytes: int) -> None:
    """Check as `check_quota` does, in a transaction, in which no other version of the team is registered."""
    found = _limited(model)
    if found is not None:
        team = Team.objects.select_for_update().get(pk=found[0].pk)
        _check(team, quota_of(team), size_bytes=size_bytes)


def body_limit(room_bytes: int) -> int:
    """Return how many bytes a body of unknown length may have where files have room for `room_bytes`."""
    return room_bytes + _SLACK_BYTES


def is_registered(*, model: str, digest: str) -> bool:
    """Return whether the model has a version with these files, which an upload returns whatever the quota."""
    return ModelVersion.objects.filter(model__name=model, digest=digest).exists()


def _limited(model: str) -> tuple[Team, Quota] | None:
    team = Team.objects.filter(name=owning_team(kind=Owned.MODEL, name=model)).first()
    if team is None or not quota_of(team).limits_versions:
        return None
    return team, quota_of(team)


def _check(team: Team, quota: Quota, *, size_bytes: int) -> int | None:
    usage = team_usage(team.name)
    if reason := refusal(team.name, quota, usage, more_bytes=size_bytes):
        raise QuotaExceeded(reason)
    return None if quota.max_bytes is None else quota.max_bytes - usage.size_bytes
