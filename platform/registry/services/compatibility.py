"""Compatibility requirement of a new version with an earlier one: set at registration, enforced at the check.

The required signature is copied at registration: moving an alias, or deleting a version, during the check does not
change the requirement.
"""

from collections.abc import Mapping

from common.errors import Conflict, NotFound
from registry.domain import contract, signature
from registry.domain.version_lifecycle import Accepted, Outcome, Refused, Status
from registry.models import ModelVersion, RegisteredModel
from registry.selectors import model_version_resolve

Requirement = Mapping[str, object]
"""`{"version": number, "inputs": [...], "outputs": [...]}`; empty without a requirement."""


def requirement(*, model: str, asked: str | None) -> Requirement:
    """Return the signature that a new version of `model` has to fit.

    Args:
        asked: `@alias` or a number; None for the model's setting, "" for no requirement.

    Raises:
        NotFound: it names an unknown version or alias. An alias from the setting may still be missing.
        Conflict: the named version is not READY, so its signature is not known.
    """
    setting = RegisteredModel.objects.filter(name=model).values_list("compatible_with", flat=True).first()
    reference = setting if asked is None else asked
    if not reference:
        return {}
    try:
        version = model_version_resolve(
            uri=f"models:/{model}{reference if reference.startswith('@') else f'/{reference}'}"
        )
    except NotFound:
        if asked is None:
            return {}
        raise
    if version.status != Status.READY.value:
        raise Conflict(
            f"model {model!r} version {version.number} is {version.status}, so nothing can be compared with it; "
            "name a READY version in compatible_with",
            field="compatible_with",
        )
    return {"version": version.number, **version.signature}


def held_to(required: Requirement, outcome: Outcome) -> Outcome:
    """Return the outcome of a check, refused where the model's signature does not fit the required one."""
    if not required or not isinstance(outcome, Accepted):
        return outcome
    sentence = misfit(required, outcome.signature)
    return Refused(sentence) if sentence else outcome


def refuse_misfit(version: ModelVersion, required: Requirement) -> None:
    """Raise Conflict where an existing version does not fit the requirement of the current push."""
    if not required or required == version.required_signature:
        return
    what = f"model {version.model.name!r} version {version.number} has the same files"
    if version.status == Status.PENDING.value:
        raise Conflict(f"{what} and is still being checked; ask again when it is READY", field="compatible_with")
    sentence = misfit(required, version.signature) if version.status == Status.READY.value else ""
    if sentence:
        raise Conflict(f"{what}, but {sentence}", field="compatible_with")


def misfit(required: Requirement, found: Mapping[str, object]) -> str:
    """Return why clients of the required signature would break, in one sentence; empty where they do not."""
    reasons = contract.compare(signature.parse(required), signature.parse(found)).breaks
    return f"it is not compatible with version {required['version']}: {'; '.join(reasons)}" if reasons else ""
