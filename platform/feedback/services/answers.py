"""Kept answers of a service: start, end, and deletion on time with their labels and scores."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from accounts.services import audit_record
from clusters.services.connection import can_record
from common.errors import Conflict, InvalidInput
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService
from deployments.reconcile import hints
from deployments.reconcile.service_change import Change, changing
from deployments.services.revisions.custom_predictors import refuse_custom
from deployments.services.services import service_named
from events.domain.kinds import Kind
from feedback.models import Answer, Kept, Label, Score, ServiceScorer
from feedback.selectors.answers import kept_get, kept_of

MAX_DAYS = 400
MAX_ROWS = 10_000_000
MAX_BYTES = 100 * 2**30
MAX_OUTPUTS = 10
MAX_PARAMETERS = 5
MAX_NAME = 200
_BATCH = 2_000
_BATCHES = 200
"""Of one call, so that it ends before the next begins."""


@dataclass(frozen=True)
class KeepOrder:
    """What to keep of a service's answers; the fields are those of `feedback.models.Kept`."""

    share_percent: float = 100.0
    days: int = 30
    max_rows: int = 1_000_000
    max_bytes: int = 2**30
    output: str = ""
    outputs: Sequence[str] = ()
    keeps_inputs: bool = False
    parameters: Sequence[str] = ()

    def check(self) -> None:
        """Raise InvalidInput, naming the field, where the order is invalid."""
        if not 0 < self.share_percent <= 100:
            raise InvalidInput(
                f"share_percent is {self.share_percent:g}; it is above 0 and up to 100", field="share_percent"
            )
        for field, most in (("days", MAX_DAYS), ("max_rows", MAX_ROWS), ("max_bytes", MAX_BYTES)):
            value = getattr(self, field)
            if not 1 <= value <= most:
                raise InvalidInput(f"{field} is {value}; it is 1 to {most}", field=field)
        if self.output:
            _check_names("output", [self.output], 1)
        _check_names("outputs", self.outputs, MAX_OUTPUTS)
        _check_names("parameters", self.parameters, MAX_PARAMETERS)


def _check_names(field: str, names: Sequence[str], most: int) -> None:
    if len(names) > most:
        raise InvalidInput(f"{field} has {len(names)} names; at most {most} are kept", field=field)
    for name in names:
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise InvalidInput(
                f"{field} has the name {name[:60]!r}; a name has 1 to {MAX_NAME} printable characters", field=field
            )
        if names.count(name) > 1:
            raise InvalidInput(f"{field} names {name[:60]!r} twice; name it once", field=field)


@transaction.atomic
def answers_keep(*, namespace: str, name: str, order: KeepOrder, actor: str, now: datetime) -> Kept:
    """Keep answers of the service from now on, or change what is kept of further ones. Idempotent.

    Raises:
        NotFound: no such service.
        InvalidInput: the order is invalid, or names an output that the model does not have.
        Conflict: the service is being deleted, or has no replicas of Fairlead's runtime that record.
    """
    order.check()
    found = service_named(namespace, name)
    with changing(found.pk, now=now) as change:
        service = change.service
        _check_service(change, order)
        before = kept_of(service.pk)
        is_kept = before is not None and service.kept_percent > 0
        if before is not None and is_kept and _columns(_order_of(before)) == _columns(order):
            return before
        asked = _columns(order)
        begun = {} if is_kept else {"created_at": now, "created_by": actor}
        kept, _ = Kept.objects.update_or_create(service=service, defaults={**asked, **begun})
        service.kept_percent = order.share_percent
        change.event(
            Kind.ANSWERS_KEPT,
            f"{actor} has answers to {order.share_percent:g} % of the requests to {service} kept for feedback, for "
            f"{order.days} days and at most {order.max_rows} of them" + (", with inputs" if order.keeps_inputs else ""),
        )
        audit_record(
            actor=actor,
            action="answers.keep",
            target=_target(service),
            now=now,
            before=None if before is None else _columns(_order_of(before)),
            after=asked,
        )
    hints.reconcile_soon(found.pk)
    return kept


def _check_service(change: Change, order: KeepOrder) -> None:
    service, stable = change.service, change.revision(Role.STABLE)
    if service.deleting_at is not None:
        raise Conflict(f"service {service} is being deleted, so nothing of it is kept")
    if not can_record(service.cluster):
        raise Conflict(
            f"service {service} runs on cluster {service.cluster}, whose file says no controlPlaneUrl, so that its "
            "pods have nowhere to bring their answers; add it first"
        )
    refuse_custom(service, stable, "gives Fairlead no answers to keep")
    version = service.model_version if stable is None else stable.model_version
    known = _output_names({} if version is None else version.signature)
    for field, names in (("output", [order.output] if order.output else []), ("outputs", order.outputs)):
        unknown = [each for each in names if known and each not in known]
        if unknown:
            raise InvalidInput(
                f"{field} names {unknown[0]!r}, and {version} has the outputs {', '.join(known)}; name one of them",
                field=field,
            )


def _output_names(signature: object) -> list[str]:
    """Return the names of a signature's outputs; none where it is not known."""
    outputs = signature.get("outputs") if isinstance(signature, dict) else None
    return [str(each["name"]) for each in outputs or () if isinstance(each, dict) and "name" in each]


@transaction.atomic
def answers_stop(*, namespace: str, name: str, actor: str, now: datetime) -> None:
    """Keep no further answers of the service; what is stored stays until its time. Idempotent.

    Raises:
        NotFound: nothing of the service is kept.
    """
    service_id = kept_get(namespace=namespace, name=name).service_id
    with changing(service_id, now=now) as change:
        if not change.service.kept_percent:
            return
        change.service.kept_percent = 0
        change.event(Kind.ANSWERS_STOPPED, f"{actor} has no further answers of {change.service} kept")
        audit_record(actor=actor, action="answers.stop", target=_target(change.service), now=now)
    hints.reconcile_soon(service_id)


def answers_forget(*, now: datetime) -> int:
    """Delete answers past their days with their labels and scores.

    Returns:
        How many answers were deleted. What is more than some batches is left for the next call.
    """
    deleted, batches = 0, _BATCHES
    for kept in Kept.objects.select_related("service").order_by("pk"):
        before = now - timedelta(days=kept.days)
        scorers = list(ServiceScorer.objects.filter(service=kept.service_id).values_list("pk", flat=True))
        while batches and (found := _forget_answers(kept, before, scorers)):
            deleted, batches = deleted + found, batches - 1
            if found < _BATCH:
                break
        if not kept.service.kept_percent:
            _forget_kept(kept)
    return deleted


@transaction.atomic
def _forget_answers(kept: Kept, before: datetime, scorers: Collection[int]) -> int:
    old = Answer.objects.filter(service=kept.service_id, at__lt=before).order_by("at")
    rows = list(old.select_for_update(skip_locked=True).values_list("pk", "request_id", "bytes")[:_BATCH])
    if not rows:
        return 0
    ids = {request_id for _, request_id, _ in rows}
    Label.objects.filter(service=kept.service_id, request_id__in=ids).delete()
    if scorers:
        Score.objects.filter(scorer__in=scorers, request_id__in=ids).delete()
    Answer.objects.filter(pk__in=[pk for pk, _, _ in rows]).delete()
    Kept.objects.filter(pk=kept.pk).update(
        rows=F("rows") - len(rows), bytes=F("bytes") - sum(size for _, _, size in rows)
    )
    return len(rows)


def _forget_kept(kept: Kept) -> None:
    """Delete the row of a service that keeps nothing and has nothing left."""
    with transaction.atomic():
        is_stopped = InferenceService.objects.select_for_update().filter(pk=kept.service_id, kept_percent=0).exists()
        has_rows = any(table.objects.filter(service=kept.service_id).exists() for table in (Answer, Label))
        if is_stopped and not has_rows:
            Kept.objects.filter(pk=kept.pk).delete()


def _columns(order: KeepOrder) -> dict[str, object]:
    return {**asdict(order), "outputs": list(order.outputs), "parameters": list(order.parameters)}


def _order_of(kept: Kept) -> KeepOrder:
    return KeepOrder(
        share_percent=kept.share_percent,
        days=kept.days,
        max_rows=kept.max_rows,
        max_bytes=kept.max_bytes,
        output=kept.output,
        outputs=tuple(kept.outputs),
        keeps_inputs=kept.keeps_inputs,
        parameters=tuple(kept.parameters),
    )


def _target(service: InferenceService) -> str:
    return f"services/{service.namespace}/{service.name}/feedback/answers"
