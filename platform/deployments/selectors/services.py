"""Service queries, with running revisions and newest rollouts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import Max, Q, QuerySet

from clusters.domain.addresses import addresses_of, is_by_host
from clusters.models import KUBERNETES, Cluster
from common.db.count import count_up_to
from common.errors import InvalidInput, NotFound
from deployments import mapping
from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.service_file import (
    PUBLIC,
    access_json,
    limits_json,
    objectives_json,
    parse_service,
    stored_access,
    stored_cors,
    stored_limits,
    stored_objectives,
)
from deployments.domain.service_state import drift as drifting
from deployments.domain.service_state.desired import Role
from deployments.domain.service_state.owner import stored_owner
from deployments.domain.waits import wait_of_service
from deployments.models import IS_WELL, InferenceService, Revision, Rollout
from deployments.selectors.revisions import revision_rows, revision_view
from deployments.selectors.rollouts.rollouts import OF_ROLLOUT, rollout_views
from deployments.views.model_status import model_status
from deployments.views.shapes import DriftView, FileView, ImportView, RolloutView, ServiceView
from integrations.clusters.base import PREVIEW_SUFFIX
from registry.models import ModelImport


def service_query() -> QuerySet[InferenceService]:
    """Return all services with the relations that `service_views` reads."""
    return InferenceService.objects.select_related(
        "cluster", "policy", "model_version__model", "awaited_import__version__model"
    )


def service_get(*, namespace: str, name: str) -> InferenceService:
    """Return one service; raises NotFound."""
    service = service_query().filter(namespace=namespace, name=name).first()
    if service is None:
        raise NotFound(f"there is no service {namespace}/{name}")
    return service


def has_service(namespace: str, name: str) -> bool:
    """Return whether there is such a service."""
    return InferenceService.objects.filter(namespace=namespace, name=name).exists()


def service_list(
    *, now: datetime, limit: int | None = None, only: Q | None = None, offset: int = 0
) -> list[ServiceView]:
    """Return services by namespace and name that meet the condition, without the first `offset`, up to `limit`."""
    end = None if limit is None else offset + limit
    in_order = InferenceService.objects.filter(only or Q()).order_by("namespace", "name")
    # The offset is skipped in the index alone.
    shown = list(in_order.values_list("pk", flat=True)[offset:end])
    return service_views(service_query().filter(pk__in=shown).order_by("namespace", "name"), now=now)


def services_worst_first(cluster: Cluster, only: Q) -> QuerySet[InferenceService]:
    """Return the services of a cluster that meet the condition, by name, unhealthy ones first."""
    return cluster.services.filter(only).order_by(IS_WELL, "namespace", "name")


def guarded_namespaces(cluster: Cluster) -> list[str]:
    """Return the namespaces of a cluster's services that not everybody may call, by name."""
    is_public = Q(access__isnull=True) | Q(access=PUBLIC)
    found = cluster.services.exclude(is_public).order_by("namespace")
    return list(found.values_list("namespace", flat=True).distinct())


def services_on_kubernetes(namespaces: Iterable[str]) -> list[tuple[str, str]]:
    """Return namespace and name of the services of these namespaces that run on Kubernetes."""
    found = InferenceService.objects.filter(namespace__in=list(namespaces), cluster__kind=KUBERNETES)
    return list(found.values_list("namespace", "name"))


def services_public(cluster: Cluster, only: Q) -> QuerySet[InferenceService]:
    """Return the services of a cluster that meet the condition and that everybody may call, by name."""
    is_public = Q(access__isnull=True) | Q(access=PUBLIC)
    return cluster.services.filter(only, is_public).order_by("namespace", "name")


def service_count_by_phase(*, only: Q) -> dict[str, int]:
    """Return how many services that meet the condition are in each phase that has any, as `common.db.count` counts."""
    services = InferenceService.objects.filter(only)
    found = {str(phase): count_up_to(services.filter(phase=phase)) for phase in ServicePhase}
    return {phase: count for phase, count in found.items() if count}


def service_search(words: Iterable[str]) -> Q:
    """Return the condition that a service's name, namespace or model contains each of the words."""
    found = Q()
    for word in words:
        found &= Q(searched__contains=word.lower())
    return found


def service_detail(*, namespace: str, name: str, now: datetime) -> ServiceView:
    """Return one service; raises NotFound."""
    return service_views([service_get(namespace=namespace, name=name)], now=now)[0]


def service_views(services: Iterable[InferenceService], *, now: datetime) -> list[ServiceView]:
    """Return the services with their running revisions and newest rollouts, in the order given."""
    services = list(services)
    newest = Rollout.objects.filter(service__in=services).values("service").annotate(newest=Max("id")).values("newest")
    rollouts = {
        rollout.service_id: rollout for rollout in Rollout.objects.filter(pk__in=newest).select_related(*OF_ROLLOUT)
    }
    needed = Q(stopped_at=None) | Q(pk__in=[rollout.to_revision_id for rollout in rollouts.values()])
    revisions = defaultdict(list)
    for revision in revision_rows().filter(needed, service__in=services):
        revisions[revision.service_id].append(revision)
    shown = {view.id: view for view in rollout_views(rollouts.values(), now=now)}
    return [_service_view(service, revisions[service.pk], rollouts.get(service.pk), shown) for service in services]


def _service_view(
    service: InferenceService, revisions: Sequence[Revision], newest: Rollout | None, shown: dict[int, RolloutView]
) -> ServiceView:
    in_progress = newest if newest is not None and not Phase(newest.phase).is_finished else None
    state = mapping.service_state(
        service,
        map(mapping.revision_state, revisions),
        None if in_progress is None else mapping.rollout_state(in_progress),
    )
    stable = next((revision for revision in revisions if revision.role == Role.STABLE), None)
    version = service.model_version if stable is None else stable.model_version
    rollout = None if newest is None else shown[newest.pk]
    file = _file_view(service, stable, newest)
    url, *leaving = _model_urls(service, service.name)
    views = {revision.pk: revision_view(service, state, revision) for revision in revisions}
    active = None if stable is None else views[stable.pk]
    target = None if newest is None else views.get(newest.to_revision_id)
    return ServiceView(
        id=service.pk,
        namespace=service.namespace,
        name=service.name,
        cluster=service.cluster.name,
        url=url,
        leaving_urls=tuple(leaving),
        preview_url=_preview_url(service) if state.has_preview else None,
        is_by_host=is_by_host(service.cluster.document),
        phase=service.phase,
        reason=_reason(service),
        model="" if version is None else version.model.name,
        model_version=None if version is None else version.number,
        policy=None if service.policy is None else service.policy.name,
        stable_revision=None if stable is None else stable.name,
        revisions=tuple(views.values()),
        rollout=rollout,
        event_seq=service.event_seq,
        changes=service.changes,
        created_at=service.created_at,
        file=file,
        model_status=model_status(
            active=active,
            target=target if in_progress is not None or (target is not None and target.is_failing) else active,
            is_in_progress=in_progress is not None,
            is_file_refused=bool(service.alias_problem)
            or (service.awaited_import is not None and service.awaited_import.ended_badly),
        ),
        import_state=None if service.awaited_import is None else _import_view(service, service.awaited_import),
        waits=wait_of_service(
            mapping.service_facts(service),
            service.waits_since or service.created_at,
            None if rollout is None else rollout.waits,
        ),
        drift_policy=service.drift_policy,
        access=access_json(stored_access(service.access)),
        cors_origins=cors.origins if (cors := stored_cors(service.cors)) is not None else (),
        limits=limits_json(stored_limits(service.limits)),
        objectives=objectives_json(stored_objectives(service.document.get("spec", {}).get("objectives"))),
        drift=tuple(map(_drift_view, drifting.stored(service.drift))),
        follows="" if (owner := stored_owner(service.owner_object)) is None else str(owner),
    )


def _drift_view(shown: drifting.Shown) -> DriftView:
    drift = shown.drift
    return DriftView(
        drifting.sentence(drift),
        drift.object,
        drift.path,
        drift.wanted,
        drift.found,
        drift.manager,
        None if drift.at is None else _time(drift.at),
        _time(shown.since),
        drift.healed,
        shown.times,
    )


def _time(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, tz=UTC)


def _import_view(service: InferenceService, awaited: ModelImport) -> ImportView:
    return ImportView(
        awaited.pk, awaited.model, awaited.shown_uri, service.import_note, ended_badly=awaited.ended_badly
    )


def _file_view(service: InferenceService, stable: Revision | None, newest: Rollout | None) -> FileView:
    if stable is None or service.live_at is None:
        is_stopped = f"{service} is stopped, as its file says"
        return FileView(False, is_stopped if service.stopped else f"nothing of {service} is live yet")
    live = f"{stable.name} ({stable.model_version}) is live, not what the file says"
    if service.awaited_import is not None:
        return FileView(False, f"{live}: {service.import_note}")
    try:
        spec = parse_service(service.document, namespace=service.namespace, name=service.name)
    except InvalidInput as error:  # an earlier release took it
        return FileView(False, f"{live}, which this release does not take: {error.message}")
    if mapping.is_what(stable, spec, service.model_version_id):
        return FileView(True, "")
    if newest is None or not mapping.is_what(newest.to_revision, spec, service.model_version_id):
        return FileView(False, live)
    verb = "ended" if Phase(newest.phase).is_finished else "is"
    why = f"rollout {newest.pk} to {newest.to_revision.name} {verb} {newest.phase}: {newest.reason_message}"
    return FileView(False, f"{live}: {why}")


def service_url(service: InferenceService) -> str:
    """Return the address of the service's model for clients, without a trailing slash; reads its cluster."""
    return _model_urls(service, service.name)[0]


def _preview_url(service: InferenceService) -> str:
    return _model_urls(service, f"{service.name}{PREVIEW_SUFFIX}")[0]


def _model_urls(service: InferenceService, name: str) -> list[str]:
    """Return the addresses of the service's model, or of its preview: its own, then those that it is leaving."""
    cluster = service.cluster
    found = addresses_of(cluster.document, cluster.gateway_url or settings.GATEWAY_URL, service.namespace, name)
    return [f"{url}/v2/models/{service.name}" for url in found]


def authority_of(url: str) -> str:
    """Return the file with the authority of the gateway at an address; empty where clients need none."""
    own = settings.GATEWAY_URL
    return settings.GATEWAY_CA if own.startswith("https:") and url.startswith(f"{own}/") else ""


def _reason(service: InferenceService) -> str:
    if service.import_note and service.model_version_id is not None:
        return f"{service.reason}; {service.import_note}"
    if not service.alias_problem:
        return service.reason
    return f"{service.reason}; what its alias means now is not rolled out: {service.alias_problem}"
