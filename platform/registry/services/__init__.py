"""Changes of models, versions and aliases. Each change adds an entry to the audit log."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import ProtectedError, RestrictedError

from accounts.domain.roles import Owned
from accounts.selectors import owning_team
from accounts.services import audit_record
from common.errors import Conflict, NotPermitted
from common.identifiers import check_alias, check_model_name
from integrations.artifacts.store import StoredArtifact
from registry import hooks
from registry.domain import tags
from registry.domain.version_lifecycle import Status
from registry.domain.version_metadata import Particulars, check_description
from registry.models import Alias, ModelVersion, RegisteredModel
from registry.selectors import alias_get, model_get, model_version_get
from registry.services import compatibility
from registry.services.model_rows import row_of, rules_keep
from registry.services.quotas import check_quota_locked
from registry.services.version_checks import check_again
from registry.storage import UnusedArtifact, delete_unused

_MAX_USES_SHOWN = 5
_NOTHING_SAID = Particulars()


@transaction.atomic
def model_create(*, name: str, description: str, now: datetime, actor: str) -> RegisteredModel:
    """Create a model without versions, with the rules that a deleted one of its name left.

    Raises Conflict where the name is taken.
    """
    check_model_name(name)
    check_description(description)
    model, created = row_of(name=name, now=now, actor=actor, description=description)
    if not created:
        raise Conflict(f"model {name!r} is there already; add a version to it or choose another name", field="name")
    audit_record(
        actor=actor, action="model.create", target=f"models/{name}", now=now, after={"description": description}
    )
    return model


@transaction.atomic
def model_delete(*, name: str, now: datetime, actor: str, by_admin: bool = False) -> None:
    """Delete the model with its versions and aliases; raises Conflict while a version is in use.

    Its rules are kept, and the next model of that name begins with them.

    Args:
        by_admin: whether the caller is an admin of the owning team, who alone may delete a model with rules.
    """
    model = _locked(model_get(name=name))
    if model.rules and not by_admin:
        team = owning_team(kind=Owned.MODEL, name=name)
        raise NotPermitted(
            f"model {name!r} {model.rules}: only an admin of team {team} or of the installation may delete it"
        )
    versions = list(model.versions.values_list("pk", flat=True))
    _refuse_if_used(versions, f"model {name!r}")
    hooks.forget_history(versions, now)
    rules_keep(model=model, now=now, actor=actor)
    _delete(model, f"model {name!r}")
    audit_record(
        actor=actor,
        action="model.delete",
        target=f"models/{name}",
        now=now,
        before={"description": model.description, "versions": len(versions)},
        detail={"kept_rules": model.rules.as_json()} if model.rules else None,
    )


@transaction.atomic
def version_register(
    *,
    model: str,
    artifact: StoredArtifact,
    source_name: str,
    now: datetime,
    actor: str,
    particulars: Particulars = _NOTHING_SAID,
) -> tuple[ModelVersion, bool]:
    """Return the model's version with these files, and whether it is new; an unknown model is created, with the rules
    that a deleted one of its name left.

    An existing version keeps its own particulars; one that is REJECTED for what the installation lacked is checked
    again. Raises Conflict where it does not fit the required compatibility, and QuotaExceeded.

    The model's row is locked while its next number is taken and used, so numbers have no gaps and no repeats. (On
    SQLite every transaction that writes is alone.)
    """
    check_model_name(model)
    particulars.check()
    owner, _ = row_of(name=model, now=now, actor=actor)
    required = compatibility.requirement(model=model, asked=particulars.compatible_with)
    known = ModelVersion.objects.filter(model=owner, digest=artifact.digest).values_list("number", flat=True).first()
    if known is not None:
        version = model_version_get(model=model, number=known)
        compatibility.refuse_misfit(version, required if particulars.compatible_with else {})
        if version.status == Status.REJECTED.value and version.of_installation:
            version = check_again(model=model, number=known, now=now, actor=actor)
        return version, False
    check_quota_locked(model=model, size_bytes=artifact.size_bytes)
    owner.latest_number += 1
    owner.save(update_fields=["latest_number"])
    version = ModelVersion.objects.create(
        model=owner,
        number=owner.latest_number,
        digest=artifact.digest,
        artifact_uri=artifact.uri,
        size_bytes=artifact.size_bytes,
        source_name=source_name,
        description=particulars.description,
        tags=tags.changed({}, particulars.tags),
        lineage=particulars.lineage.as_json(),
        required_signature=dict(required),
        next_check_at=now,
        created_at=now,
        created_by=actor,
    )
    audit_record(
        actor=actor,
        action="model_version.register",
        target=f"models/{model}/versions/{version.number}",
        now=now,
        after={"digest": artifact.digest, "size_bytes": artifact.size_bytes, "source_name": source_name},
    )
    return version, True


@transaction.atomic
def version_delete(*, model: str, number: int, now: datetime, actor: str) -> None:
    """Delete one version, whose number is never reused; raises Conflict while it has an alias or is in use.

    Services drop the failed and retired revisions that ran it.
    """
    version = model_version_get(model=model, number=number)
    _locked(version.model)
    what = f"model {model!r} version {number}"
    aliases = list(version.aliases.order_by("name").values_list("name", flat=True))
    if aliases:
        raise Conflict(f"{what} has the alias {', '.join(aliases)}; move or delete it first")
    _refuse_if_used([version.pk], what)
    hooks.forget_history([version.pk], now)
    _delete(version, what)
    audit_record(
        actor=actor,
        action="model_version.delete",
        target=f"models/{model}/versions/{number}",
        now=now,
        before={"digest": version.digest, "size_bytes": version.size_bytes, "source_name": version.source_name},
    )


@transaction.atomic
def alias_set(
    *, model: str, name: str, number: int, now: datetime, actor: str, by_admin: bool = False
) -> tuple[Alias, bool]:
    """Point the alias at a version and return it, and whether it is new. Only a READY version can have one.

    Args:
        by_admin: whether the caller is an admin of the owning team, who alone may move protected aliases.
    """
    check_alias(name)
    version = model_version_get(model=model, number=number)
    owner = _locked(version.model)
    if not by_admin:
        _refuse_protected(owner, name)
    version.refresh_from_db(fields=["status"])
    if version.status != Status.READY.value:
        reported = f" because {version.reason.rstrip('.')}" if version.reason else ""
        raise Conflict(
            f"model {model!r} version {number} is {version.status}{reported}; an alias can point only at a READY "
            "version",
            field="version",
        )
    before = Alias.objects.filter(model=version.model, name=name).values_list("version__number", flat=True).first()
    if before == number:
        return alias_get(model=model, name=name), False
    alias, created = Alias.objects.update_or_create(
        model=version.model, name=name, defaults={"version": version, "moved_at": now}
    )
    hooks.model_moved(model)
    audit_record(
        actor=actor,
        action="alias.set",
        target=f"models/{model}/aliases/{name}",
        now=now,
        before=None if before is None else {"version": before},
        after={"version": number},
    )
    return alias, created


@transaction.atomic
def alias_delete(*, model: str, name: str, now: datetime, actor: str, by_admin: bool = False) -> None:
    """Delete the alias; raises NotFound.

    Args:
        by_admin: whether the caller is an admin of the owning team, who alone may delete protected aliases.
    """
    alias = alias_get(model=model, name=name)
    if not by_admin:
        _refuse_protected(_locked(alias.model), name)
    number = alias.version.number
    alias.delete()
    hooks.model_moved(model)
    audit_record(
        actor=actor, action="alias.delete", target=f"models/{model}/aliases/{name}", now=now, before={"version": number}
    )


def artifacts_collect(*, now: datetime, actor: str) -> list[UnusedArtifact]:
    """Garbage-collect the artifacts without a version, except recent ones, and return them."""
    deleted = delete_unused(now=now)
    if deleted:
        audit_record(
            actor=actor,
            action="storage.collect",
            target="storage",
            now=now,
            before={"artifacts": len(deleted), "size_bytes": sum(each.size_bytes for each in deleted)},
        )
    return deleted


def _locked(model: RegisteredModel) -> RegisteredModel:
    """Return the model, its row locked until the transaction ends; raises NotFound if it was deleted meanwhile."""
    return RegisteredModel.objects.select_for_update().filter(pk=model.pk).first() or model_get(name=model.name)


def _refuse_protected(model: RegisteredModel, alias: str) -> None:
    if alias in model.protected_aliases:
        raise NotPermitted(
            f"the alias {alias!r} of model {model.name!r} is protected: only an admin of the team that owns the model "
            "may set, move or delete it"
        )


def _refuse_if_used(version_ids: Iterable[int], what: str) -> None:
    uses = [use for use in hooks.uses_of(version_ids) if not use.is_history]
    if uses:
        shown = ", ".join(map(str, uses[:_MAX_USES_SHOWN]))
        more = f" and {len(uses) - _MAX_USES_SHOWN} more" if len(uses) > _MAX_USES_SHOWN else ""
        raise Conflict(f"{what} is in use by {shown}{more}; take it out of use first")


def _delete(row: RegisteredModel | ModelVersion, what: str) -> None:
    try:
        row.delete()
    except (ProtectedError, RestrictedError) as error:
        raise Conflict(f"{what} came into use meanwhile; take it out of use first") from error
