"""Queries of the rules that deleted models left. Read-only."""

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.models import Ownership
from accounts.selectors import owning_team
from common.errors import NotFound
from registry.models import KeptRules


def kept_rules_list(*, only: Q | None = None) -> QuerySet[KeptRules]:
    """Return the kept rules that meet `only`, each with its present `owner`."""
    owned = Ownership.objects.filter(kind=Owned.MODEL, name=OuterRef("name"))
    owner = Coalesce(Subquery(owned.values("team__name")[:1]), Value(DEFAULT_TEAM))
    return KeptRules.objects.filter(only or Q()).annotate(owner=owner)


def kept_rules_get(*, name: str) -> KeptRules:
    """Return the rules that the deleted model of that name left; raises NotFound."""
    kept = kept_rules_list(only=Q(name=name)).first()
    if kept is None:
        raise NotFound(f"no deleted model {name[:150]!r} left rules; those of a model that exists are on its page")
    return kept


def has_changed_hands(*, name: str) -> bool:
    """Return whether the name belongs to another team than at the deletion of the model."""
    kept = KeptRules.objects.filter(name=name).first()
    return kept is not None and owning_team(kind=Owned.MODEL, name=name) != kept.team
