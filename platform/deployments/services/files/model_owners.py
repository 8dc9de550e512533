"""Owners of models that services bring: the team of the service's namespace."""

from datetime import datetime

from accounts.domain.roles import Owned
from accounts.models import Ownership
from accounts.services.teams import ownership_set
from registry.selectors import is_somebodys_model


def give_to_team_of_namespace(model: str, namespace: str, *, actor: str, now: datetime) -> None:
    """Give a model without an owner to the team whose service brings it."""
    owner = Ownership.objects.select_related("team").filter(kind=Owned.NAMESPACE, name=namespace).first()
    if owner is not None and not is_somebodys_model(name=model):
        ownership_set(team=owner.team.name, kind=Owned.MODEL, name=model, actor=actor, now=now)
