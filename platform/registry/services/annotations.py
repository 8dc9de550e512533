"""Mutable metadata of models and versions: description, tags, and the compatibility that new versions require."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from registry.domain import tags
from registry.domain.version_metadata import check_description, check_reference
from registry.models import ModelVersion, RegisteredModel
from registry.selectors import model_get, model_version_get


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes; None leaves a part as it is, and in `tags` removes the tag."""

    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    compatible_with: str | None = None


@transaction.atomic
def model_annotate(*, name: str, changes: Changes, now: datetime, actor: str) -> None:
    """Change a model's metadata; raises NotFound."""
    model = RegisteredModel.objects.select_for_update().filter(name=name).first() or model_get(name=name)
    after = _said(model, changes)
    if changes.compatible_with is not None:
        after["compatible_with"] = check_reference(changes.compatible_with)
    _write(model, after, action="model.annotate", target=f"models/{name}", now=now, actor=actor)


@transaction.atomic
def version_annotate(*, model: str, number: int, changes: Changes, now: datetime, actor: str) -> None:
    """Change a version's metadata; its content and lineage are immutable. Raises NotFound."""
    found = ModelVersion.objects.select_for_update().filter(model__name=model, number=number).first()
    version = found or model_version_get(model=model, number=number)
    target = f"models/{model}/versions/{number}"
    _write(version, _said(version, changes), action="model_version.annotate", target=target, now=now, actor=actor)


def _said(row: RegisteredModel | ModelVersion, changes: Changes) -> dict[str, object]:
    after: dict[str, object] = {"tags": tags.changed(row.tags, changes.tags)}
    if changes.description is not None:
        after["description"] = check_description(changes.description)
    return after


def _write(
    row: RegisteredModel | ModelVersion,
    after: Mapping[str, object],
    *,
    action: str,
    target: str,
    now: datetime,
    actor: str,
) -> None:
    """Save the columns that differ, with an audit log entry; does nothing where all are equal."""
    before = {column: getattr(row, column) for column in after}
    differ = [column for column in after if after[column] != before[column]]
    if not differ:
        return
    for column in differ:
        setattr(row, column, after[column])
    row.save(update_fields=differ)
    audit_record(
        actor=actor,
        action=action,
        target=target,
        now=now,
        before={column: before[column] for column in differ},
        after={column: after[column] for column in differ},
    )
