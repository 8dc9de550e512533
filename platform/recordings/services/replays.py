"""Replay jobs: order, claim, renewal with progress, end. None of these writes waits for a model.

An attempt is claimed by a conditional UPDATE that names the values read, and the claim's id fences all later writes of
its worker, as for imports (`registry.services.imports`).
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from clusters.services.connection import file_of
from common.document import Document
from common.errors import Conflict, NotFound
from deployments.domain.comparison.agreement import shown_percent
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.report import Report
from deployments.domain.comparison.stored import report_json, worst_json
from deployments.domain.policy.comparison import parse_terms, terms_json
from deployments.domain.service_file import is_code
from deployments.domain.service_state.desired import Role
from deployments.mapping import model_config_of
from deployments.models import InferenceService
from deployments.reconcile.service_change import changing
from deployments.services.egress import service_egress
from deployments.services.revision_change import check_ready
from deployments.services.rollouts import version_of
from deployments.services.services import service_named, spec_of
from events.domain.kinds import Kind
from integrations.clusters.base import Candidate
from jobs.domain import attempts
from jobs.domain.attempts import AttemptState, Status
from jobs.services.claim import broke_off, columns_of, due, put_back, state_of
from recordings.models import Recording, Replay
from recordings.selectors.recordings import recording_get
from recordings.selectors.replays import replay_summary, replay_terms
from registry.domain.lineage import origin_of

MAX_CONCURRENT = 2
"""Concurrent replays of the whole installation; each runs a model and takes one of the worker's threads."""


@dataclass(frozen=True, slots=True)
class ReplayClaim:
    """Claim to run one replay and to write its end."""

    id: uuid.UUID
    replay_id: int
    cluster_id: int
    recording_id: int
    length: int
    candidate: Candidate
    terms: Terms


@transaction.atomic
def replay_start(
    *,
    namespace: str,
    name: str,
    recording: int | None,
    version: str,
    actor: str,
    now: datetime,
    terms: object = None,
) -> Replay:
    """Order a replay of a recording with a version, compared with the recorded responses.

    Args:
        recording: None takes the newest that holds requests.
        version: `2`, `@alias` or `models:/NAME/2`; it need not fit the live one, which the comparison then shows.
        terms: a policy's `analysis.comparison`; None takes its defaults.

    Raises:
        InvalidInput: version or terms are malformed.
        NotFound: no such service, recording, version or alias.
        Conflict: the version is not READY, the recording is empty, or the service serves nothing yet.
    """
    service = service_named(namespace, name)
    asked = parse_terms(Document.of(terms or {}, "comparison", "comparison"))
    source = _source(service, recording)
    # A verdict is due at the end of a recording, however short that is.
    asked = replace(asked, min_pairs=min(asked.min_pairs, source.requests))
    stable = service.revisions.select_related("model_version__model").filter(role=Role.STABLE).first()
    if stable is None:
        raise Conflict(f"service {service} serves nothing yet")
    target = version_of(stable.model_version, version)
    check_ready(target)
    row = Replay.objects.create(
        service=service,
        recording=source,
        model_version=target,
        terms=terms_json(asked),
        total=source.requests,
        next_try_at=now,
        created_at=now,
        created_by=actor,
    )
    audit_record(
        actor=actor,
        action="replay.start",
        target=_target(row),
        now=now,
        after={"recording": source.pk, "version": target.uri},
    )
    return row


def replay_begin(*, replay_id: int, now: datetime, lease: timedelta) -> ReplayClaim | None:
    """Claim the replay; None where it is not due, or the limit of concurrent replays is reached.

    One that is impossible, since its recording is gone or it has no attempts left, has FAILED then.
    """
    related = ("service__cluster", "recording", "model_version")
    row = Replay.objects.select_related(*related).filter(pk=replay_id).first()
    if row is None or not attempts.may_begin(state_of(row), now):
        return None
    pending = Replay.objects.filter(status=Status.PENDING.value)
    if pending.filter(next_try_at__gt=now).exclude(claim=None).count() >= MAX_CONCURRENT:
        return None
    if row.recording is None:
        state = attempts.failed(state_of(row), "its recording was deleted before the replay ended")
    else:
        state = attempts.begin(state_of(row), now, lease)
    begun = state.status is Status.PENDING
    claim_id = uuid.uuid4()
    with transaction.atomic():
        held = pending.filter(pk=row.pk, attempts=row.attempts, next_try_at=row.next_try_at, claim=row.claim)
        if not held.update(**columns_of(state), claim=claim_id if begun else None, done=0):
            return None
        if not begun or row.recording is None:
            _tell_end(row, state, now)
            return None
    return ReplayClaim(
        id=claim_id,
        replay_id=row.pk,
        cluster_id=row.service.cluster_id,
        recording_id=row.recording.pk,
        length=row.recording.bytes,
        candidate=_candidate(row),
        terms=replay_terms(row),
    )


def replays_due(*, now: datetime, limit: int) -> list[int]:
    """Return the due replays, oldest first."""
    return due(Replay.objects.all(), now=now, limit=limit)


def replay_renew(*, claim: ReplayClaim, done: int, now: datetime, lease: timedelta) -> bool:
    """Write the progress and renew the claim for another `lease`; False where it was lost and the work should stop."""
    return bool(_held(claim).update(done=done, next_try_at=now + lease))


def replay_put_back(*, claim: ReplayClaim, now: datetime) -> None:
    """Release the replay, so that another worker restarts it, as if this attempt had not begun."""
    put_back(_held(claim), now=now, done=0)


def replay_broke_off(*, claim: ReplayClaim, reason: str, now: datetime) -> None:
    """Record an attempt that ended without a result; it is retried at once, a few times."""
    broke_off(_held(claim), reason=reason, now=now)


def replay_fail(*, claim: ReplayClaim, reason: str, now: datetime) -> None:
    """Record that the replay is impossible."""
    _end(claim, lambda state: attempts.failed(state, reason), None, now)


def replay_end(*, claim: ReplayClaim, report: Report, done: int, now: datetime) -> bool:
    """Write the comparison's result; False where the claim was lost or the service deleted meanwhile."""
    return _end(claim, attempts.done, (report, done), now)


def _source(service: InferenceService, recording: int | None) -> Recording:
    if recording is not None:
        found = recording_get(namespace=service.namespace, name=service.name, recording_id=recording)
        if not found.requests:
            raise Conflict(
                f"recording {found.pk} of service {service} holds no requests yet; let it run while some come"
            )
        return found
    newest = Recording.objects.filter(service=service, requests__gt=0).order_by("-pk").first()
    if newest is None:
        raise NotFound(f"service {service} has no recording that holds requests; start one first", field="recording")
    return newest


def _candidate(row: Replay) -> Candidate:
    spec, file = spec_of(row.service), file_of(row.service.cluster)
    return Candidate(
        name=f"version {row.model_version.number}",
        model_name=row.service.name,
        model_version=str(row.model_version.number),
        artifact_uri=row.model_version.artifact_uri,
        model_config=model_config_of(row.model_version, spec.model_config),
        env=spec.env,
        is_code=is_code(row.model_version.platform),
        egress=service_egress(row.service, spec),
        namespace=row.service.namespace,
        service=row.service.name,
        replay=str(row.pk),
        artifact_digest=row.model_version.digest,
        artifact_origin=origin_of(row.model_version.lineage),
        resources=spec.resources,
        patches=() if file is None else (*file.patches, *(spec.patches if file.allows_service_patches else ())),
    )


def _held(claim: ReplayClaim) -> QuerySet[Replay]:
    return Replay.objects.filter(pk=claim.replay_id, status=Status.PENDING.value, claim=claim.id)


@transaction.atomic
def _end(
    claim: ReplayClaim,
    move: Callable[[AttemptState], AttemptState],
    found: tuple[Report, int] | None,
    now: datetime,
) -> bool:
    row = _held(claim).select_for_update(of=("self",)).select_related("service", "model_version").first()
    if row is None:
        return False
    if found is not None:
        report, row.done = found
        row.report, row.worst = report_json(report), worst_json(report)
    state = move(state_of(row))
    for name, value in columns_of(state).items():
        setattr(row, name, value)
    row.claim, row.finished_at = None, now
    row.save()
    _tell_end(row, state, now)
    return True


def _tell_end(row: Replay, state: AttemptState, now: datetime) -> None:
    """Write the event of an end; sets the end time of a replay that ends without a worker's report."""
    Replay.objects.filter(pk=row.pk, finished_at=None).update(finished_at=now)
    what = f"the replay of {row.total} recorded requests by version {row.model_version.number}"
    how = f"failed: {state.reason}" if state.status is Status.FAILED else f"ended: {_conclusion(row)}"
    with changing(row.service_id, now=now) as change:
        change.event(Kind.REPLAY_ENDED, f"{what} {how}", by_itself=True)


def _conclusion(row: Replay) -> str:
    """Return the comparison's summary of an ended replay, without any content of requests."""
    summary = replay_summary(row)
    if summary.agreement_percent is None:
        return "no answer could be compared"
    agreement = shown_percent(summary.agreement_percent)
    return f"the answers agree with the recorded ones in {agreement} % ({summary.measurement.verdict})"


def _target(row: Replay) -> str:
    return f"services/{row.service.namespace}/{row.service.name}/replays/{row.pk}"
