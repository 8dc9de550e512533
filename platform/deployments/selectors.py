"""What is known about services, revisions, rollouts and events. Reads only; API and pages show the same values.

The number of queries does not depend on how many services, revisions or rollouts there are.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db.models import Max, Q, QuerySet

from common.errors import NotFound
from deployments import rows
from deployments.analysis.verdict import Measurement
from deployments.desired import Role, ServiceState, mirror_of, weight_of
from deployments.models import AnalysisRun, Cluster, Event, InferenceService, Revision, Rollout, RolloutPolicy
from deployments.phases import Phase
from deployments.policy import Step, Strategy, gate_json, stored_policy
from deployments.shapes import (
    AnalysisRunView,
    EventView,
    ReasonView,
    RequestsView,
    RevisionView,
    RolloutView,
    ServiceView,
    StepView,
)
from integrations.clusters.base import PREVIEW_SUFFIX

__all__ = [
    "AnalysisRunView",
    "EventView",
    "ReasonView",
    "RequestsView",
    "RevisionView",
    "RolloutView",
    "ServiceView",
    "StepView",
    "change_marks",
    "cluster_event_query",
    "cluster_query",
    "earlier_stable_query",
    "event_query",
    "event_view",
    "events_after",
    "events_newest",
    "policy_get",
    "policy_query",
    "revision_query",
    "revision_views",
    "rollout_detail",
    "rollout_list",
    "rollout_namespace",
    "rollout_query",
    "rollout_views",
    "service_detail",
    "service_get",
    "service_list",
    "service_query",
    "service_views",
    "stable_before",
]


def policy_query() -> QuerySet[RolloutPolicy]:
    """Return all policies."""
    return RolloutPolicy.objects.all()


def policy_get(*, name: str) -> RolloutPolicy:
    """Return one policy; raises NotFound."""
    policy = RolloutPolicy.objects.filter(name=name).first()
    if policy is None:
        raise NotFound(f"there is no policy {name!r}")
    return policy


def service_query() -> QuerySet[InferenceService]:
    """Return all services with what `service_views` reads of them."""
    return InferenceService.objects.select_related("policy", "model_version__model")


def service_get(*, namespace: str, name: str) -> InferenceService:
    """Return one service; raises NotFound."""
    service = service_query().filter(namespace=namespace, name=name).first()
    if service is None:
        raise NotFound(f"there is no service {namespace}/{name}")
    return service


def service_list(*, limit: int | None = None, only: Q | None = None) -> list[ServiceView]:
    """Return all services by namespace and name, or only those that fit the condition."""
    return service_views(service_query().filter(only or Q()).order_by("namespace", "name")[:limit])


def service_detail(*, namespace: str, name: str) -> ServiceView:
    """Return one service; raises NotFound."""
    return service_views([service_get(namespace=namespace, name=name)])[0]


def service_views(services: Iterable[InferenceService]) -> list[ServiceView]:
    """Return the services with their running revisions and newest rollouts, in the order given."""
    services = list(services)
    newest = Rollout.objects.filter(service__in=services).values("service").annotate(newest=Max("id")).values("newest")
    rollouts = {
        rollout.service_id: rollout for rollout in Rollout.objects.filter(pk__in=newest).select_related(*_OF_ROLLOUT)
    }
    needed = Q(stopped_at=None) | Q(pk__in=[rollout.to_revision_id for rollout in rollouts.values()])
    revisions = defaultdict(list)
    for revision in _revisions().filter(needed, service__in=services):
        revisions[revision.service_id].append(revision)
    shown = {view.id: view for view in rollout_views(rollouts.values())}
    return [_service_view(service, revisions[service.pk], rollouts.get(service.pk), shown) for service in services]


def revision_query(*, service: InferenceService) -> QuerySet[Revision]:
    """Return all revisions a service ever had."""
    return _revisions().filter(service=service)


def revision_views(service: InferenceService, revisions: Iterable[Revision]) -> list[RevisionView]:
    """Return revisions of one service as they are shown, in the order given."""
    rollout = Rollout.objects.filter(service=service, finished_at=None).first()
    state = rows.service_state(service, [], rollout)
    return [_revision_view(service, state, revision) for revision in revisions]


def earlier_stable_query(*, service_id: int) -> QuerySet[Revision]:
    """Return the revisions that were stable once and neither are so nor are being rolled out, newest first.

    Every rollout begins at a revision that is stable and has taken requests, so these are the ones to go back to.
    """
    begun_at = Rollout.objects.filter(service=service_id).values("from_revision")
    return (
        _revisions()
        .filter(service=service_id, pk__in=begun_at)
        .exclude(role__in=[Role.STABLE, Role.CANARY])
        .order_by("-number")
    )


def stable_before(*, stable: Revision) -> Revision | None:
    """Return the revision that was stable before `stable` was; None where it is the first."""
    won = Rollout.objects.filter(to_revision=stable, phase=Phase.HEALTHY).order_by("-id").first()
    return None if won is None else _revisions().get(pk=won.from_revision_id)


def rollout_query(*, service: InferenceService | None = None) -> QuerySet[Rollout]:
    """Return rollouts, of one service where given, with what `rollout_views` reads of them."""
    rollouts = Rollout.objects.select_related(*_OF_ROLLOUT)
    return rollouts if service is None else rollouts.filter(service=service)


def rollout_detail(*, rollout_id: int) -> RolloutView:
    """Return one rollout with all its analysis runs; raises NotFound."""
    rollout = rollout_query().filter(pk=rollout_id).first()
    if rollout is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    return rollout_views([rollout])[0]


def rollout_namespace(*, rollout_id: int) -> str:
    """Return the namespace of the rollout's service; raises NotFound."""
    found = Rollout.objects.filter(pk=rollout_id).values_list("service__namespace", flat=True).first()
    if found is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    return found


def rollout_list(*, namespace: str, name: str, limit: int = 50) -> list[RolloutView]:
    """Return the newest rollouts of a service, newest first; raises NotFound."""
    service = service_get(namespace=namespace, name=name)
    return rollout_views(rollout_query(service=service).order_by("-id")[:limit])


def rollout_views(rollouts: Iterable[Rollout]) -> list[RolloutView]:
    """Return the rollouts with their analysis runs, in the order given."""
    rollouts = list(rollouts)
    runs = defaultdict(list)
    for run in AnalysisRun.objects.filter(rollout__in=rollouts).order_by("attempt", "step_index"):
        runs[run.rollout_id].append(run)
    return [_rollout_view(rollout, runs[rollout.pk]) for rollout in rollouts]


def event_query(*, service: InferenceService) -> QuerySet[Event]:
    """Return the events of a service."""
    return Event.objects.filter(service=service)


def events_after(*, service_id: int, seq: int, limit: int = 100) -> list[EventView]:
    """Return the events of a service with a larger number than `seq`, oldest first."""
    return [
        event_view(event) for event in Event.objects.filter(service=service_id, seq__gt=seq).order_by("seq")[:limit]
    ]


def events_newest(*, service_id: int, limit: int = 50) -> list[EventView]:
    """Return the newest events of a service, newest first."""
    return [event_view(event) for event in Event.objects.filter(service=service_id).order_by("-seq")[:limit]]


def cluster_query() -> QuerySet[Cluster]:
    """Return the clusters."""
    return Cluster.objects.all()


def cluster_event_query(*, name: str) -> QuerySet[Event]:
    """Return the events of a cluster itself, such as a restart of its gateway; raises NotFound."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(f"there is no cluster {name!r}")
    return Event.objects.filter(cluster=cluster)


def change_marks() -> dict[int, tuple[int, int]]:
    """Return service id -> (changes, newest event number), by which a poller sees what to show anew."""
    marks = InferenceService.objects.values_list("pk", "changes", "event_seq")
    return {pk: (changes, event_seq) for pk, changes, event_seq in marks}


def event_view(event: Event) -> EventView:
    """Return an event as it is shown."""
    return EventView(
        seq=event.seq,
        at=event.at,
        kind=event.kind,
        message=event.message,
        revision=event.revision or None,
        rollout=event.rollout_id,
    )


_OF_ROLLOUT = ("service", "from_revision__model_version", "to_revision__model_version")


def _revisions() -> QuerySet[Revision]:
    return Revision.objects.select_related("model_version__model").order_by("number")


def _service_view(
    service: InferenceService, revisions: Sequence[Revision], newest: Rollout | None, shown: dict[int, RolloutView]
) -> ServiceView:
    in_progress = newest if newest is not None and not Phase(newest.phase).is_finished else None
    state = rows.service_state(service, revisions, in_progress)
    stable = next((revision for revision in revisions if revision.role == Role.STABLE), None)
    version = service.model_version if stable is None else stable.model_version
    return ServiceView(
        id=service.pk,
        namespace=service.namespace,
        name=service.name,
        url=f"{settings.GATEWAY_URL}/serving/{service.namespace}/{service.name}/v2/models/{service.name}",
        preview_url=_preview_url(service) if state.has_preview else None,
        phase=service.phase,
        reason=_reason(service),
        model=version.model.name,
        model_version=version.number,
        policy=None if service.policy is None else service.policy.name,
        stable_revision=None if stable is None else stable.name,
        revisions=tuple(_revision_view(service, state, revision) for revision in revisions),
        rollout=None if newest is None else shown[newest.pk],
        event_seq=service.event_seq,
        changes=service.changes,
        created_at=service.created_at,
    )


def _preview_url(service: InferenceService) -> str:
    name = f"{service.name}{PREVIEW_SUFFIX}"
    return f"{settings.GATEWAY_URL}/serving/{service.namespace}/{name}/v2/models/{service.name}"


def _reason(service: InferenceService) -> str:
    if not service.alias_problem:
        return service.reason
    return f"{service.reason}; what its alias means now is not rolled out: {service.alias_problem}"


def _revision_view(service: InferenceService, state: ServiceState, revision: Revision) -> RevisionView:
    seen = service.observed.get(revision.name, {})
    return RevisionView(
        name=revision.name,
        number=revision.number,
        model=revision.model_version.model.name,
        model_version=revision.model_version.number,
        role="shadow" if revision.role == Role.CANARY and state.mirror_percent is not None else revision.role,
        replicas_wanted=revision.min_replicas if revision.stopped_at is None else 0,
        replicas_ready=int(seen.get("ready", 0)),
        restarts=int(seen.get("restarts", 0)),
        weight_wanted=weight_of(state, rows.revision_state(revision)),
        weight_actual=int(seen.get("weight", 0)),
        mirror_wanted=mirror_of(state, rows.revision_state(revision)),
        mirror_actual=int(seen.get("mirror", 0)),
        message=str(seen.get("message", "")),
        created_at=revision.created_at,
    )


def _rollout_view(rollout: Rollout, runs: Sequence[AnalysisRun]) -> RolloutView:
    policy = stored_policy(rollout.policy_document)
    state, is_shadow = rows.rollout_state(rollout), policy.strategy is Strategy.SHADOW
    observed = rollout.service.observed.get(rollout.to_revision.name, {})
    views = tuple(_run_view(run, is_shadow=is_shadow) for run in runs)
    present = next((view for view in reversed(views) if view.attempt == rollout.attempt), None)
    return RolloutView(
        id=rollout.pk,
        service=str(rollout.service),
        from_revision=rollout.from_revision.name,
        to_revision=rollout.to_revision.name,
        from_version=rollout.from_revision.model_version.number,
        to_version=rollout.to_revision.model_version.number,
        policy=rollout.policy_name or None,
        strategy=policy.strategy,
        phase=rollout.phase,
        attempt=rollout.attempt,
        step_index=rollout.step_index,
        steps=tuple(_step_view(step) for step in policy.steps),
        weight_wanted=state.client_weight,
        weight_actual=int(observed.get("weight", 0)),
        weight_seen_percent=None if present is None else present.seen_percent,
        seen_requests=0 if present is None else _clients_requests(present.requests, is_shadow=is_shadow),
        mirror_wanted=state.mirror_percent,
        mirror_actual=int(observed.get("mirror", 0)),
        then=policy.then if is_shadow else None,
        reason=ReasonView(rollout.reason_code, rollout.reason_message),
        verdict=rollout.verdict,
        analysis_runs=views,
        started_at=rollout.started_at,
        finished_at=rollout.finished_at,
        created_by=rollout.created_by,
    )


def _step_view(step: Step) -> StepView:
    analysis = None if step.gate is None else gate_json(step.gate)
    return StepView(step.weight, step.hold.total_seconds(), step.pause, analysis)


def _clients_requests(requests: RequestsView, *, is_shadow: bool) -> int:
    """Return how many requests clients sent; a shadow's are copies."""
    return requests.stable if is_shadow else requests.canary + requests.stable


def _run_view(run: AnalysisRun, *, is_shadow: bool) -> AnalysisRunView:
    requests = RequestsView(run.canary_requests, run.stable_requests)
    total = _clients_requests(requests, is_shadow=is_shadow)
    return AnalysisRunView(
        step_index=run.step_index,
        attempt=run.attempt,
        weight_percent=run.weight,
        verdict=run.verdict,
        message=run.message,
        started_at=run.started_at,
        finished_at=run.finished_at,
        requests=requests,
        # A copy may be counted before the request it was made of.
        seen_percent=round(min(100.0, 100 * run.canary_requests / total), 2) if total else None,
        measurements=tuple(Measurement(**measurement) for measurement in run.measurements),
    )
