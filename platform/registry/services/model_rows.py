"""Creation of a model's row, with the rules that an earlier model of its name left, and the keeping of rules.

The row is inserted before the kept rules are read, and the deletion writes them in its transaction, with the row
locked: an insertion waits on the unique name until the deletion is committed, so it always finds what that kept.
"""

from datetime import datetime

from django.db import transaction

from accounts.domain.roles import Owned
from accounts.selectors import owning_team
from accounts.services import audit_record
from registry.models import KeptRules, RegisteredModel
from registry.selectors.kept_rules import kept_rules_get


@transaction.atomic
def row_of(*, name: str, now: datetime, actor: str, description: str = "") -> tuple[RegisteredModel, bool]:
    """Return the model's row, locked until the transaction ends, and whether it is new."""
    while True:
        found, created = RegisteredModel.objects.get_or_create(
            name=name, defaults={"description": description, "created_at": now, "created_by": actor}
        )
        if created:
            _restore(found, now, actor)
            return found, True
        if locked := RegisteredModel.objects.select_for_update().filter(pk=found.pk).first():
            return locked, False  # otherwise it was deleted meanwhile


def rules_keep(*, model: RegisteredModel, now: datetime, actor: str) -> None:
    """Keep the rules of a model that is deleted in this transaction and whose row is locked."""
    if model.rules:
        kept = {**model.rules.as_json(), "team": owning_team(kind=Owned.MODEL, name=model.name)}
        KeptRules.objects.update_or_create(name=model.name, defaults={**kept, "kept_at": now, "kept_by": actor})


@transaction.atomic
def kept_rules_remove(*, name: str, now: datetime, actor: str) -> None:
    """Remove the rules that a deleted model left, so that the next one begins without; raises NotFound."""
    kept = KeptRules.objects.select_for_update().filter(name=name).first() or kept_rules_get(name=name)
    kept.delete()
    audit_record(
        actor=actor,
        action="model.remove_rules",
        target=f"models/{name}",
        now=now,
        before={**kept.rules.as_json(), "team": kept.team},
    )


def _restore(model: RegisteredModel, now: datetime, actor: str) -> None:
    """Give a new model the rules that its predecessor left."""
    kept = KeptRules.objects.select_for_update().filter(name=model.name).first()
    if kept is None:
        return
    model.requires_approval, model.protected_aliases = kept.requires_approval, kept.protected_aliases
    model.save(update_fields=["requires_approval", "protected_aliases"])
    kept.delete()
    owner = owning_team(kind=Owned.MODEL, name=model.name)
    audit_record(
        actor=actor,
        action="model.restore_rules",
        target=f"models/{model.name}",
        now=now,
        after=model.rules.as_json(),
        detail=None if owner == kept.team else {"team_at_deletion": kept.team, "team": owner},
    )
