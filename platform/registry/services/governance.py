"""Governance of models: protected aliases, and approval of versions.

Admins of the team that owns the model set which aliases are protected, and whether versions need an approval: the edges
check that. A deployer of a version approves or declines it; the user who registered or imported it, or made the token
that did, may not approve it, and a token that another user made decides nothing.
"""

from datetime import datetime

from django.db import transaction

from accounts.domain.approver import Approver
from accounts.services import audit_record
from common.errors import Conflict, InvalidInput, NotPermitted
from common.identifiers import check_alias
from registry import hooks
from registry.domain.approval import Approval, check_said
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel
from registry.selectors import approval_refusal, decision_refusal, model_get, model_version_get

MAX_PROTECTED = 50


@transaction.atomic
def alias_protect(*, model: str, name: str, now: datetime, actor: str) -> None:
    """Restrict this alias, which need not exist yet, to admins for setting, moving and deletion; raises NotFound."""
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
    """Lift the restriction of this alias to admins; idempotent. Raises NotFound."""
    row = _locked(model)
    if name not in row.protected_aliases:
        return
    _protect(row, [each for each in row.protected_aliases if each != name])
    audit_record(actor=actor, action="alias.unprotect", target=f"models/{model}/aliases/{name}", now=now)


@transaction.atomic
def approval_require(*, model: str, is_required: bool, now: datetime, actor: str) -> None:
    """Require approval of the model's versions for deployment from now on, or lift it; raises NotFound.

    Running services are not affected.
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
    *, model: str, number: int, decision: Approval, comment: str, approver: Approver, now: datetime, actor: str
) -> ModelVersion:
    """Approve or decline a version, and return it; the newest decision counts.

    Raises:
        NotFound: no such version.
        InvalidInput: the comment is too long, or missing when declining.
        NotPermitted: another user made the caller's token; approvers have to sign in themselves; the user registered
            the version, imported its files, or made the token that did, and tries to approve it.
        Conflict: a version is approved that is not READY.
    """
    said = check_said(decision, comment)
    # Of the row alone: nothing else changes during the decision.
    ModelVersion.objects.select_for_update(of=("self",)).filter(model__name=model, number=number).first()
    version = model_version_get(model=model, number=number)
    if decision is Approval.APPROVED and version.status != Status.READY.value:
        raise Conflict(f"{version} is {version.status}; only a READY version can be approved")
    if decision is Approval.APPROVED:
        why = approval_refusal(version=version, approver=approver)
    else:
        why = decision_refusal(model=model, approver=approver)
    if why:
        raise NotPermitted(f"{version} is not {decision}: {why}")
    before = {"approval": version.approval, "comment": version.approval_comment}
    version.approval, version.approval_comment = decision.value, said
    version.approval_by, version.approval_at = approver.username, now
    version.save(update_fields=["approval", "approval_comment", "approval_by", "approval_at"])
    hooks.version_decided(version)
    hooks.model_moved(model)  # waiting participants need not wait for the next sweep
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
