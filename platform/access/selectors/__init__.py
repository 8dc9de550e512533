"""Keys as a caller may see them."""

from django.db.models import QuerySet

from access.models import AccessKey
from accounts.domain.roles import DEFAULT_TEAM, Role
from accounts.models import ApiToken
from common.errors import NotFound


def key_query(*, token: ApiToken) -> QuerySet[AccessKey]:
    """Return the keys of the caller's teams; administrators of the installation see all."""
    keys = AccessKey.objects.select_related("team", "user").prefetch_related("tokens")
    if token.roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return keys
    return keys.filter(team__name__in=token.roles)


def key_get(*, name: str) -> AccessKey:
    """Return one key; raises NotFound."""
    key = AccessKey.objects.select_related("team", "user").prefetch_related("tokens").filter(name=name).first()
    if key is None:
        raise NotFound(f"there is no key {name[:80]!r} that you may see")
    return key
