"""Access control: the token's scope limits what a caller may do, the user's role in the owning team where.

Used by `accounts.auth.permissions` for single objects and by lists, which leave out what the caller has no role for.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Q

from accounts.domain.roles import DEFAULT_TEAM, Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, Ownership
from accounts.selectors import owning_team
from common.errors import NotFound, NotPermitted


class _Kind(StrEnum):
    ANYWHERE = "anywhere"
    TEAM = "team"
    NAMESPACE = "namespace"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Place:
    """Object of a request, for permission checks."""

    kind: _Kind
    name: str = ""

    @classmethod
    def anywhere(cls) -> "Place":
        """What any role in any team suffices for: the caller himself, shared things, lists of visible things."""
        return cls(_Kind.ANYWHERE)

    @classmethod
    def installation(cls) -> "Place":
        """Things without an owner: the default team's."""
        return cls(_Kind.TEAM, DEFAULT_TEAM)

    @classmethod
    def team(cls, name: str) -> "Place":
        """A team itself."""
        return cls(_Kind.TEAM, name)

    @classmethod
    def namespace(cls, name: str) -> "Place":
        """A namespace with its services and their rollouts."""
        return cls(_Kind.NAMESPACE, name)

    @classmethod
    def model(cls, name: str) -> "Place":
        """A model with its versions and aliases."""
        return cls(_Kind.MODEL, name)


def is_administrator(token: ApiToken) -> bool:
    """Return whether the caller administers the installation."""
    return token.allows(Scope.ADMIN) and token.roles.get(DEFAULT_TEAM) is Role.ADMIN


def administered(token: ApiToken) -> frozenset[str] | None:
    """Return the names of the teams that the caller's user administers; None for all teams."""
    roles = token.roles
    if roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return None
    return frozenset(team for team, role in roles.items() if role is Role.ADMIN)


def require(token: ApiToken, needed: Scope, place: Place) -> None:
    """Raise unless the caller has `needed` permission at `place`.

    Raises:
        NotPermitted: the token's scope or the user's role is too narrow.
        NotFound: the place is another team's, whose names the caller may not learn.
    """
    if not token.allows(needed):
        raise NotPermitted(
            f"this needs a token with scope {needed.value}; token {token.name!r} has scope {token.scope}"
        )
    team = _team_of(token, place)
    role = _role(token, team)
    if role is None and place.kind is not _Kind.ANYWHERE and place != Place.installation():
        raise NotFound(f"there is no {place.kind} {place.name[:150]!r} that you may see")
    if role is None or not role.scope.includes(needed):
        where = f"in team {team}" if team else "in a team"
        raise NotPermitted(
            f"this needs the role {Role.needed_for(needed)} {where}; user {token.user.username!r} is "
            f"{role or 'no member'}; ask an administrator of the team"
        )


def may(token: ApiToken, needed: Scope, place: Place) -> bool:
    """Return whether `require` would let the caller through."""
    try:
        require(token, needed, place)
    except (NotPermitted, NotFound):
        return False
    return True


def visible(token: ApiToken, kind: Owned, column: str) -> Q:
    """Return the condition for rows whose `column` names something of `kind` that the caller may see."""
    return permitted(token, Scope.READ, kind, column)


def permitted(token: ApiToken, needed: Scope, kind: Owned, column: str) -> Q:
    """Return the condition for rows whose `column` names something of `kind` at which `require` lets the caller."""
    if not token.allows(needed):
        return Q(pk__in=())
    roles = {team: role for team, role in token.roles.items() if role.scope.includes(needed)}
    if roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return Q()
    owned = Ownership.objects.filter(kind=kind)
    if DEFAULT_TEAM in roles:
        return ~Q(**{f"{column}__in": owned.exclude(team__name__in=roles).values("name")})
    return Q(**{f"{column}__in": owned.filter(team__name__in=roles).values("name")})


def seen_names(token: ApiToken, kind: Owned, names: Iterable[str]) -> set[str]:
    """Return those of `names` that the caller may see; one query for all."""
    return may_names(token, Scope.READ, kind, names)


def may_names(token: ApiToken, needed: Scope, kind: Owned, names: Iterable[str]) -> set[str]:
    """Return those of `names` at which `require` would let the caller through; one query for all."""
    asked, roles = set(names), token.roles
    if not asked or not token.allows(needed):
        return set()
    if roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return asked
    owners = dict(Ownership.objects.filter(kind=kind, name__in=asked).values_list("name", "team__name"))
    found = {name: roles.get(owners.get(name, DEFAULT_TEAM)) for name in asked}
    return {name for name, role in found.items() if role is not None and role.scope.includes(needed)}


def _team_of(token: ApiToken, place: Place) -> str:
    """Return the name of the team whose role decides; empty where any team's does."""
    if place.kind in (_Kind.ANYWHERE, _Kind.TEAM):
        return place.name
    if token.roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return DEFAULT_TEAM  # may do everything everywhere, so no query is needed
    return owning_team(kind=Owned(place.kind.value), name=place.name)


def _role(token: ApiToken, team: str) -> Role | None:
    roles = token.roles
    if roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return Role.ADMIN
    if team:
        return roles.get(team)
    return max(roles.values(), key=list(Role).index, default=None)
