"""Keys as a caller may see them, and issuers."""

from django.db.models import QuerySet

from access.models import AccessKey, TokenIssuer
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


def issuer_get(*, name: str) -> TokenIssuer:
    """Return one issuer; raises NotFound."""
    issuer = TokenIssuer.objects.filter(name=name).first()
    if issuer is None:
        raise NotFound(f"there is no issuer {name[:80]!r}")
    return issuer
