"""Scorers of a service: set and deleted. A scorer that is new or changed scores the labels of before it too."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict, InvalidInput
from common.identifiers import check_dns_label
from deployments.models import InferenceService
from deployments.services.services import service_named
from feedback.domain.scorers import OF_VALUES, check_options
from feedback.models import Kept, Label, ServiceScorer
from feedback.selectors.scorers import output_of, scorer_get

MOST_SCORERS = 20
"""Of a service; each takes part of the time of every join."""


@transaction.atomic
def scorer_set(
    *, namespace: str, name: str, scorer: str, kind: str, options: Mapping[str, Any], actor: str, now: datetime
) -> ServiceScorer:
    """Make or change a scorer. Idempotent; another kind or other options begin its scores from the start.

    Raises:
        NotFound: no such service.
        InvalidInput: the name, the kind or an option is invalid.
        Conflict: what the scorer reads of answers is not kept, or the service has as many scorers as it may.
    """
    check_dns_label(scorer)
    check_options(kind, options)
    service = service_named(namespace, name)
    _check_output(service, kind, options)
    before = ServiceScorer.objects.select_for_update().filter(service=service, name=scorer).first()
    if before is not None and (before.kind, before.options) == (kind, dict(options)):
        return before
    if before is None and service.scorers.count() >= MOST_SCORERS:
        raise Conflict(f"service {service} has {MOST_SCORERS} scorers, as many as it may; delete one first")
    if before is not None:
        before.delete()  # with its scores and hours, which are of another unit
    newest = Label.objects.filter(service=service).order_by("-pk").values_list("pk", flat=True).first()
    row = ServiceScorer.objects.create(
        service=service,
        name=scorer,
        kind=kind,
        options=dict(options),
        backfill_below=None if newest is None else newest + 1,
        created_at=now,
        created_by=actor,
    )
    audit_record(
        actor=actor,
        action="scorer.set",
        target=_target(service, scorer),
        now=now,
        before=None if before is None else _values(before),
        after=_values(row),
    )
    return row


@transaction.atomic
def scorer_delete(*, namespace: str, name: str, scorer: str, actor: str, now: datetime) -> None:
    """Delete a scorer with its scores and hours; raises NotFound."""
    row = scorer_get(namespace=namespace, name=name, scorer=scorer)
    row.delete()
    target = _target(row.service, scorer)
    audit_record(actor=actor, action="scorer.delete", target=target, now=now, before=_values(row))


def _check_output(service: InferenceService, kind: str, options: Mapping[str, Any]) -> None:
    """Raise Conflict or InvalidInput where the values of the output that the scorer reads are not kept."""
    if kind not in OF_VALUES:
        return
    kept = Kept.objects.filter(service=service).first()
    if kept is None:
        raise Conflict(
            f"{kind} reads probabilities from the values of an output, and no answers of service {service} are kept; "
            "keep them first, with the output's name in outputs"
        )
    if output_of(kept, options):
        return
    named = options.get("output") or kept.output
    wanted = f"the output {named!r}" if named else "an output"
    found = ", ".join(kept.outputs) or "of no output"
    raise InvalidInput(
        f"{kind} reads probabilities from the values of {wanted}, and of service {service} the values kept are those: "
        f"{found}; keep answers with that output's name in outputs",
        field="kind",
    )


def _values(row: ServiceScorer) -> dict[str, object]:
    return {"kind": row.kind, "options": row.options}


def _target(service: InferenceService, scorer: str) -> str:
    return f"services/{service.namespace}/{service.name}/feedback/scorers/{scorer}"
