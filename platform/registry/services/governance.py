"""Rules that a model's versions and aliases live under, and what people decide of versions.

Which aliases are protected, and whether versions need an approval, is for admins of the team that owns the model: the
edges see to that. A version is approved or declined by a deployer of it, an approval by none who brought it in.
"""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict, InvalidInput, NotPermitted
from common.identifiers import check_alias
from registry import hooks
from registry.domain.approval import Approval, check_said, refusal
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel
from registry.selectors import model_get, model_version_get

MAX_PROTECTED = 50


@transaction.atomic
def alias_protect(*, model: str, name: str, now: datetime, actor: str) -> None:
    """Let only admins set, move and delete this alias, which need not be there yet; raises NotFound."""
    check_alias(name)
    row = _locked(model)
    if name in row.protected_aliases:
        return
    if len(row.protected_aliases) >= MAX_PROTECTED:
        raise InvalidInput(
            f"model {model!r} has {MAX_PROTECTED} protected aliases, and no more are kept", field="alias"
        )
    _protect(row, [*row.protected_aliases, name])
    audit_record(actor=actor, action="alias.protect", target=f"models/{model}/aliases/{name}", now=now)


@transaction.atomic
def alias_unprotect(*, model: str, name: str, now: datetime, actor: str) -> None:
    """Let every deployer set, move and delete this alias again; where they may, nothing changes. Raises NotFound."""
    row = _locked(model)
    if name not in row.protected_aliases:
        return
    _protect(row, [each for each in row.protected_aliases if each != name])
    audit_record(actor=actor, action="alias.unprotect", target=f"models/{model}/aliases/{name}", now=now)


@transaction.atomic
def approval_require(*, model: str, is_required: bool, now: datetime, actor: str) -> None:
    """Let only approved versions of the model into services from now on, or all of them again; raises NotFound.

    What is served already goes on.
    """
    row = _locked(model)
    if row.requires_approval == is_required:
        return
    row.requires_approval = is_required
    row.save(update_fields=["requires_approval"])
    hooks.model_moved(model)
    audit_record(
        actor=actor,
        action="model.require_approval",
        target=f"models/{model}",
        now=now,
        before={"requires_approval": not is_required},
        after={"requires_approval": is_required},
    )


@transaction.atomic
def version_decide(
    *, model: str, number: int, decision: Approval, comment: str, username: str, now: datetime, actor: str
) -> ModelVersion:
    """Approve or decline a version, and return it; the newest decision counts.

    Raises:
        NotFound: no such version.
        InvalidInput: the comment is too long, or one that declines is missing.
        NotPermitted: the user registered the version, or imported its files, and would approve it.
        Conflict: a version is approved that is not READY.
    """
    said = check_said(decision, comment)
    # Of the row alone: nothing else changes while it is decided.
    ModelVersion.objects.select_for_update(of=("self",)).filter(model__name=model, number=number).first()
    version = model_version_get(model=model, number=number)
    if decision is Approval.APPROVED:
        if version.status != Status.READY.value:
            raise Conflict(f"{version} is {version.status}; only a READY version can be approved")
        if why := refusal(username, version.brought_by()):
            raise NotPermitted(f"{version} is not approved: {why}")
    before = {"approval": version.approval, "comment": version.approval_comment}
    version.approval, version.approval_comment = decision.value, said
    version.approval_by, version.approval_at = username, now
    version.save(update_fields=["approval", "approval_comment", "approval_by", "approval_at"])
    hooks.version_decided(version)
    hooks.model_moved(model)  # what waits for an approval need not wait for the next look
    audit_record(
        actor=actor,
        action="model_version.approve" if decision is Approval.APPROVED else "model_version.decline",
        target=f"models/{model}/versions/{number}",
        now=now,
        before=before,
        after={"approval": decision.value, "comment": said},
    )
    return version


def _locked(name: str) -> RegisteredModel:
    return RegisteredModel.objects.select_for_update().filter(name=name).first() or model_get(name=name)


def _protect(row: RegisteredModel, names: list[str]) -> None:
    row.protected_aliases = sorted(names)
    row.save(update_fields=["protected_aliases"])
