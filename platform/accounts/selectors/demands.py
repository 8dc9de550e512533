"""Queries of demands. Read-only."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from accounts.domain.demand import Demand
from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.models import DemandRow, Ownership


def demand_get(*, team: str = "", namespace: str = "") -> Demand:
    """Return the demand of the team, or of the namespace; an empty one where it has none."""
    found = _rows().filter(Q(team__name=team) if team else Q(team=None, namespace=namespace)).first()
    return Demand(f"team {team}" if team else f"namespace {namespace}") if found is None else found.demand


def demands_within(*, team: str) -> list[Demand]:
    """Return the demand of the team, then those of the namespaces that it owns, by name; one query."""
    owned = Ownership.objects.filter(kind=Owned.NAMESPACE)
    named = Q(namespace__in=owned.filter(team__name=team).values("name"))
    if team == DEFAULT_TEAM:
        named = ~Q(namespace__in=owned.exclude(team__name=team).values("name"))
    rows = _rows().filter(Q(team__name=team) | Q(named, team=None)).order_by("namespace")
    return [row.demand for row in rows]


def demands_on(kind: Owned, names: Iterable[str]) -> dict[str, tuple[Demand, ...]]:
    """Return the demands that hold for each name, of its team and of the namespace itself; at most two queries."""
    asked = set(names)
    if not asked:
        return {}
    rows = list(_rows())  # as few as teams and namespaces with a demand
    if not rows:
        return dict.fromkeys(asked, ())
    owners = dict(Ownership.objects.filter(kind=kind, name__in=asked).values_list("name", "team__name"))
    found: dict[str, tuple[Demand, ...]] = {}
    for name in asked:
        team = owners.get(name, DEFAULT_TEAM)
        itself = name if kind is Owned.NAMESPACE else None
        found[name] = tuple(row.demand for row in rows if row.is_of(team=team, namespace=itself))
    return found


def _rows() -> QuerySet[DemandRow]:
    return DemandRow.objects.select_related("team")
