"""May a new version be one that today's clients cannot use? What is asked for at registration, held to at the check.

The signature that a version must fit is copied when it is registered: an alias that moves while the version is being
checked, or a version that is deleted, changes nothing about what was asked.
"""

from collections.abc import Mapping

from common.errors import Conflict, NotFound
from registry.domain import contract, signature
from registry.domain.version_lifecycle import Accepted, Outcome, Refused, Status
from registry.models import ModelVersion, RegisteredModel
from registry.selectors import model_version_resolve

Requirement = Mapping[str, object]
"""`{"version": number, "inputs": [...], "outputs": [...]}`; empty where nothing is required."""


def requirement(*, model: str, asked: str | None) -> Requirement:
    """Return what a new version of `model` has to fit.

    Args:
        asked: `@alias` or a number; None for what the model's setting says, "" for nothing.

    Raises:
        NotFound: what was asked for is not there. An alias that only the setting names may be not there yet.
        Conflict: the version that was asked for is not READY, so its signature is not known.
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
    """Return the outcome of a check, refused where the model that was found does not fit what is required."""
    if not required or not isinstance(outcome, Accepted):
        return outcome
    sentence = misfit(required, outcome.signature)
    return Refused(sentence) if sentence else outcome


def refuse_misfit(version: ModelVersion, required: Requirement) -> None:
    """Raise Conflict where a version that is there already does not fit what its pusher asks for now."""
    if not required or required == version.required_signature:
        return
    what = f"model {version.model.name!r} version {version.number} has the same files"
    if version.status == Status.PENDING.value:
        raise Conflict(f"{what} and is still being checked; ask again when it is READY", field="compatible_with")
    sentence = misfit(required, version.signature) if version.status == Status.READY.value else ""
    if sentence:
        raise Conflict(f"{what}, but {sentence}", field="compatible_with")


def misfit(required: Requirement, found: Mapping[str, object]) -> str:
    """Return why clients of what is required could not go on, in one sentence; empty where they can."""
    reasons = contract.compare(signature.parse(required), signature.parse(found)).breaks
    return f"it is not compatible with version {required['version']}: {'; '.join(reasons)}" if reasons else ""
