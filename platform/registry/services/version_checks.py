"""Validation jobs of versions: claim, renewal, outcome. None of these writes waits for the runtime.

A check is claimed by a conditional UPDATE that names the values read, so of two workers exactly one gets it. The
claim's id fences the outcome: a worker that was silent for longer than its lease cannot overwrite another's result.

Where one process can check many versions, a worker claims a batch of them under one id, in turns of teams as they wait.
It renews the lease of all that are left together, and releases those that it does not come to.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from common.errors import Conflict
from common.randomness import new_id
from integrations.clusters.base import Resources
from registry import hooks
from registry.domain import version_lifecycle
from registry.domain.lineage import origin_of
from registry.domain.version_lifecycle import Accepted, CheckState, Outcome, Status
from registry.models import ModelVersion
from registry.selectors import model_version_get, versions_to_check
from registry.services import compatibility

MOST_AT_ONCE = 20
"""Concurrent checks of the whole installation where they run on Kubernetes, unless the setting says another number."""

MOST_IN_A_BATCH = 64
"""Limit of versions that one claim covers: enough that the start of a process counts little in each."""

_ACTOR = "fairlead"


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim to write the outcome of one check.

    Attributes:
        id: of the batch.
        attempt: 1 for the first.
    """

    id: uuid.UUID
    version_id: int
    attempt: int
    artifact_uri: str
    digest: str
    origin: str
    resources: Resources


def checks_at_once(now: datetime) -> int:
    """Return the limit of concurrent checks of the whole installation: the setting, or what the place allows."""
    return settings.MODEL_CHECKS_AT_ONCE or min(MOST_AT_ONCE, *hooks.jobs_at_once(now))


def checks_begin(*, version_id: int, now: datetime, lease: timedelta, most: int = 1) -> list[Claim]:
    """Claim the version's check, and up to `most` with those that wait longest; the others' turns come first.

    None where none is due, it is not its turn, or the limit of checks is reached. Those that wait are divided among the
    workers that may still begin. A check whose lease expired is parked instead.
    """
    version = ModelVersion.objects.filter(pk=version_id).first()
    if version is None or not version_lifecycle.may_begin(version.check_state, now):
        return []
    if version.claim is not None:
        _park(version, now)
        return []
    running = ModelVersion.objects.filter(status=Status.PENDING.value, next_check_at__gt=now).exclude(claim=None)
    free = checks_at_once(now) - running.values("claim").distinct().count()
    if free <= 0:
        return []
    waiting = versions_to_check(now=now, limit=free * most)
    if version.pk not in waiting[:free]:
        return []
    size = min(most, -(-len(waiting) // free))
    batch_id = new_id()
    chosen = [version.pk, *(pk for pk in waiting if pk != version.pk)][:size]
    rows = ModelVersion.objects.select_related("model").in_bulk(chosen)
    begun = [_begin(rows[pk], batch_id, now, lease) for pk in chosen if pk in rows]
    return [claim for claim in begun if claim is not None]


def _begin(version: ModelVersion, claim_id: uuid.UUID, now: datetime, lease: timedelta) -> Claim | None:
    if not version_lifecycle.may_begin(version.check_state, now):
        return None
    if version.claim is not None:
        _park(version, now)
        return None
    state = version_lifecycle.begin(version.check_state, now, lease)
    with transaction.atomic():
        begun = state.status is Status.PENDING
        won = _as_read(version).update(**_columns(state), claim=claim_id if begun else None, check_begun_at=now)
        if won and not begun:
            _record_outcome(version, state, now)
    if not (won and begun):
        return None
    lineage = version.lineage
    return Claim(
        claim_id,
        version.pk,
        state.attempts,
        version.artifact_uri,
        version.digest,
        origin_of(lineage),
        resources_of(lineage),
    )


@transaction.atomic
def _park(version: ModelVersion, now: datetime) -> None:
    state = version_lifecycle.crashed(version.check_state, now)
    if _as_read(version).update(**_columns(state), claim=None) and state.status is not Status.PENDING:
        _record_outcome(version, state, now)


def _as_read(version: ModelVersion) -> QuerySet[ModelVersion]:
    """Return the row if it is as it was read: of several workers one changes it."""
    return ModelVersion.objects.filter(
        pk=version.pk,
        status=Status.PENDING.value,
        attempts=version.attempts,
        next_check_at=version.next_check_at,
        claim=version.claim,
    )


def check_renew(*, claim: Claim, now: datetime, lease: timedelta) -> bool:
    """Renew the claim for another `lease`; False where it was lost and the work should stop."""
    held = ModelVersion.objects.filter(pk=claim.version_id, status=Status.PENDING.value, claim=claim.id)
    return bool(held.update(next_check_at=now + lease))


def checks_renew(*, claim_id: uuid.UUID, now: datetime, lease: timedelta) -> bool:
    """Renew all claims of a batch that have no outcome yet; False where none is left."""
    held = ModelVersion.objects.filter(claim=claim_id, status=Status.PENDING.value)
    return bool(held.update(next_check_at=now + lease))


def checks_release(*, claims: Iterable[Claim], now: datetime) -> None:
    """Release checks of a batch that were not begun, as if they had not been claimed."""
    for claim in claims:
        held = ModelVersion.objects.filter(pk=claim.version_id, status=Status.PENDING.value, claim=claim.id)
        held.update(attempts=claim.attempt - 1, next_check_at=now, claim=None)


@transaction.atomic
def check_end(*, claim: Claim, outcome: Outcome, now: datetime) -> bool:
    """Write the outcome of the check; False where the claim was lost or the version deleted meanwhile."""
    version = (
        ModelVersion.objects.select_for_update(of=("self",))
        .select_related("model")
        .filter(pk=claim.version_id, status=Status.PENDING.value, claim=claim.id)
        .first()
    )
    if version is None:
        return False
    outcome = compatibility.held_to(version.required_signature, outcome)
    state = version_lifecycle.end(version.check_state, outcome, now)
    found = (
        {"signature": outcome.signature, "platform": outcome.platform, "profile": outcome.profile}
        if isinstance(outcome, Accepted)
        else {}
    )
    ModelVersion.objects.filter(pk=version.pk).update(**_columns(state), **found, claim=None)
    if state.status is not Status.PENDING:
        _record_outcome(version, state, now)
    return True


@transaction.atomic
def check_again(*, model: str, number: int, now: datetime, actor: str) -> ModelVersion:
    """Queue another check of a REJECTED version, and return it PENDING; raises Conflict for any other."""
    version = model_version_get(model=model, number=number)
    columns = {**_columns(version_lifecycle.again(now)), "claim": None}
    if not ModelVersion.objects.filter(pk=version.pk, status=Status.REJECTED.value).update(**columns):
        raise Conflict(
            f"model {model!r} version {number} is {version.status}; only a REJECTED version is checked again",
            field="version",
        )
    audit_record(
        actor=actor,
        action="model_version.recheck",
        target=f"models/{model}/versions/{number}",
        now=now,
        before={"status": Status.REJECTED.value, "reason": version.reason},
        after={"status": Status.PENDING.value},
    )
    return model_version_get(model=model, number=number)


def resources_of(lineage: Mapping[str, Any]) -> Resources:
    """Return the resources that run the files of a stored lineage; empty for files that any machine runs."""
    return Resources(
        accelerator=str(lineage.get("accelerator", "")), products=tuple(map(str, lineage.get("products", ())))
    )


def _columns(state: CheckState) -> dict[str, object]:
    return {
        "status": state.status.value,
        "attempts": state.attempts,
        "reason": state.reason,
        "next_check_at": state.next_check_at,
        "of_installation": state.of_installation,
    }


def _record_outcome(version: ModelVersion, state: CheckState, now: datetime) -> None:
    audit_record(
        actor=_ACTOR,
        action="model_version.check",
        target=f"models/{version.model.name}/versions/{version.number}",
        now=now,
        before={"status": Status.PENDING.value},
        after={"status": state.status.value, "reason": state.reason},
    )
    hooks.version_checked(version, state.status, state.reason, now)
