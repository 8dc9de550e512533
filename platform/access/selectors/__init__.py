"""Keys as a caller may see them, and issuers."""

from django.db.models import OuterRef, QuerySet

from access.models import AccessKey, KeyToken, TokenIssuer
from accounts.domain.roles import DEFAULT_TEAM, Role
from accounts.models import ApiToken
from common.errors import NotFound
from usage.selectors import last_use_of


def _keys() -> QuerySet[AccessKey]:
    """Return all keys, each with `last_used_at`; None for one that was never used, or whose usage is forgotten."""
    of_key = KeyToken.objects.filter(key=OuterRef(OuterRef("pk"))).values("token_id")
    keys = AccessKey.objects.select_related("team", "user").prefetch_related("tokens")
    return keys.annotate(last_used_at=last_use_of(of_key))


def key_query(*, token: ApiToken) -> QuerySet[AccessKey]:
    """Return the keys of the caller's teams; administrators of the installation see all."""
    keys = _keys()
    if token.roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return keys
    return keys.filter(team__name__in=token.roles)


def key_get(*, name: str) -> AccessKey:
    """Return one key; raises NotFound."""
    key = _keys().filter(name=name).first()
    if key is None:
        raise NotFound(f"there is no key {name[:80]!r} that you may see")
    return key


def team_of_key(name: str) -> str:
    """Return the name of the team whose key it is; empty for no such key."""
    return AccessKey.objects.filter(name=name).values_list("team__name", flat=True).first() or ""


def issuer_get(*, name: str) -> TokenIssuer:
    """Return one issuer; raises NotFound."""
    issuer = TokenIssuer.objects.filter(name=name).first()
    if issuer is None:
        raise NotFound(f"there is no issuer {name[:80]!r}")
    return issuer
