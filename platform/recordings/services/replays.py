"""Replay jobs: order, and the kind: every recorded request is sent again, and the responses are compared.

Requests are sent in their order, one at a time: a stateful model gets them as it got them from clients.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from accounts.services import audit_record
from clusters.services.connection import file_of
from common.errors import Conflict, NotFound
from common.files.document import Document
from deployments.domain.comparison.agreement import shown_percent
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.pairing import Pair
from deployments.domain.comparison.report import Report
from deployments.domain.comparison.stored import report_json, worst_json
from deployments.domain.policy.comparison import parse_terms, terms_json
from deployments.domain.service_file import is_code
from deployments.domain.service_state.desired import Role
from deployments.mapping import model_config_of
from deployments.models import InferenceService
from deployments.reconcile.participants.comparison import with_pair
from deployments.reconcile.service_change import changing
from deployments.services.revisions.egress import service_egress
from deployments.services.revisions.revision_change import check_ready
from deployments.services.revisions.secret_env import env_of_job, why_no_env
from deployments.services.rollout.rollouts import version_of
from deployments.services.services import service_named, spec_of
from events.domain.kinds import Kind
from integrations.clusters.base import Candidate
from jobs.domain.attempts import AttemptState, Status
from jobs.services.kinds import Driver, JobClaim, JobKind, Note, Pods
from recordings.models import Recording, Replay
from recordings.reconcile import payload_files
from recordings.selectors.recordings import recording_get
from recordings.selectors.replays import replay_summary, replay_terms
from registry.domain.lineage import origin_of
from registry.services.images import check_has_files

MAX_CONCURRENT = 2
"""Concurrent replays of the whole installation; each runs a model."""


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """What a replay sends where, and the rules of the comparison."""

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
    check_has_files(target)
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
        env=env_of_job(row.service, spec),
        secret_env={} if file is None else spec.secret_env,
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


def _record_end(row: Replay, state: AttemptState, now: datetime) -> None:
    """Write the event of an end."""
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


def _order(row: Replay, _claim_id: UUID) -> ReplayOrder:
    assert row.recording is not None  # noqa: S101 - see `_impossible`
    return ReplayOrder(row.recording.pk, row.recording.bytes, _candidate(row), replay_terms(row))


def _impossible(row: Replay) -> str:
    if row.recording is None:
        return "its recording was deleted before the replay ended"
    return why_no_env(row.service, spec_of(row.service))


def _answered(claim: JobClaim[Replay, ReplayOrder], driver: Driver, note: Note) -> tuple[Report, int]:
    """Return the comparison, and how many requests were answered."""
    report, done, order = Report(), 0, claim.order
    with driver().replay(order.candidate) as answer:
        for recorded in payload_files.read(order.recording_id, length=order.length):
            note({"done": done})
            report = with_pair(report, Pair(recorded, answer(recorded)), order.terms)
            done += 1
        note({"done": done})
    return report, done


def _write(row: Replay, found: tuple[Report, int], _now: datetime) -> None:
    report, row.done = found
    row.report, row.worst = report_json(report), worst_json(report)


def _target(row: Replay) -> str:
    return f"services/{row.service.namespace}/{row.service.name}/replays/{row.pk}"


REPLAY = JobKind(
    noun="replay",
    model=Replay,
    order=_order,
    work=_answered,
    write=_write,
    progress={"done": 0},
    most=lambda _row: MAX_CONCURRENT,
    beside=lambda _row: Q(),
    cluster_of=lambda row: row.service.cluster_id,
    impossible=_impossible,
    ended=_record_end,
    related=("service__cluster", "recording", "model_version"),
    pods=Pods.OF_SERVICE,
)
