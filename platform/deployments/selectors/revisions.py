"""Revision queries of a service."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db.models import Q, QuerySet

from clusters.domain.pricing import saved_by
from clusters.selectors import prices_of
from deployments import mapping
from deployments.domain.autoscaling.scale_to_zero import stored_sleep
from deployments.domain.phases import Phase
from deployments.domain.service_state import failures
from deployments.domain.service_state.desired import Role, ServiceState, mirror_of, weight_of
from deployments.models import InferenceService, Revision, Rollout
from deployments.views.model_status import failure_view
from deployments.views.shapes import PlacementView, RevisionView


def revision_rows() -> QuerySet[Revision]:
    """Return all revisions with the relations that `revision_view` reads, by number."""
    return Revision.objects.select_related("model_version__model").order_by("number")


def revision_query(*, service: InferenceService) -> QuerySet[Revision]:
    """Return all revisions a service ever had."""
    return revision_rows().filter(service=service)


def revision_views(service: InferenceService, revisions: Iterable[Revision]) -> list[RevisionView]:
    """Return revisions of one service as shown, in the order given."""
    rollout = Rollout.objects.filter(service=service, finished_at=None).first()
    state = mapping.service_state(service, [], None if rollout is None else mapping.rollout_state(rollout))
    return [revision_view(service, state, revision) for revision in revisions]


def earlier_stable_query(*, service_id: int) -> QuerySet[Revision]:
    """Return the revisions that were stable once, and are neither that nor being rolled out now, newest first.

    Every rollout begins at a revision that is stable and has accepted requests, so these are the targets of a rollback,
    and those that had requests when the service was stopped.
    """
    begun_at = Rollout.objects.filter(service=service_id).values("from_revision")
    return (
        revision_rows()
        .filter(Q(pk__in=begun_at) | Q(served_until__isnull=False), service=service_id)
        .exclude(role__in=[Role.STABLE, Role.CANARY])
        .order_by("-number")
    )


def stable_before(*, stable: Revision) -> Revision | None:
    """Return the revision that was stable before `stable` was; None where it is the first."""
    won = Rollout.objects.filter(to_revision=stable, phase=Phase.HEALTHY).order_by("-id").first()
    if won is not None:
        return revision_rows().get(pk=won.from_revision_id)
    # Without a rollout it is the first, or replaced the one that had served while the service was stopped.
    served = revision_rows().filter(service=stable.service_id, served_until__isnull=False).exclude(pk=stable.pk)
    return served.order_by("-served_until").first()


def outdated_query() -> QuerySet[Revision]:
    """Return the stable revisions of running services whose pinned pod templates are not the present ones."""
    return (
        Revision.objects.filter(role=Role.STABLE, stopped_at=None, service__stopped=False, service__deleting_at=None)
        .exclude(template_changes="")
        .select_related("service__cluster", "model_version__model")
    )


def revision_view(service: InferenceService, state: ServiceState, revision: Revision) -> RevisionView:
    """Return a revision of a service in `state` as shown."""
    seen, recorded = service.observed.get(revision.name, {}), mapping.revision_state(revision)
    runs = revision.stopped_at is None and not service.stopped
    wanted = revision.replicas if runs else 0
    has_failed = revision.role == Role.FAILED and revision.last_failure is not None
    sleep = stored_sleep(revision.load)
    is_asleep = runs and recorded.is_asleep and sleep.slept_at is not None
    asleep_hours, prices = sleep.total_s(service.seen_at or service.created_at) / 3600, prices_of(service.cluster)
    is_failing = bool(seen.get("is_failing")) or has_failed
    is_pools = bool(revision.pool) and not revision.own_replicas  # which restart with the pool
    restarted = () if is_pools else seen.get("restart_numbers", ())
    return RevisionView(
        name=revision.name,
        number=revision.number,
        model=revision.model_version.model.name,
        model_version=revision.model_version.number,
        role="shadow" if revision.role == Role.CANARY and state.is_shadow else revision.role,
        replicas_wanted=wanted,
        replicas_least=revision.min_replicas,
        replicas_most=revision.max_replicas,
        scaling=str(revision.load.get("why", "")) if runs else "",
        replicas_ready=int(seen.get("ready", 0)),
        restarts=int(seen.get("restarts", 0)),
        weight_wanted=weight_of(state, recorded),
        weight_actual=int(seen.get("weight", 0)),
        mirror_wanted=mirror_of(state, recorded),
        mirror_actual=int(seen.get("mirror", 0)),
        message=str(seen.get("message", "")),
        replicas_to_restart=sum(number < service.restart_number for number in restarted),
        created_at=revision.created_at,
        model_state=failures.model_state(
            role=revision.role,
            wanted=wanted,
            ready=int(seen.get("ready", 0)),
            replicas=len(seen.get("restart_numbers", ())),
            is_failing=is_failing,
        ),
        is_failing=is_failing,
        last_failure=failure_view(revision.last_failure),
        placement=_placement_view(revision),
        egress=mapping.egress_of(revision),
        image="" if recorded.custom is None else recorded.custom.image,
        protocol="" if recorded.custom is None else recorded.custom.protocol.value,
        pool=revision.pool,
        pool_memory_bytes=None if recorded.model_pool is None else recorded.model_pool.memory_budget_bytes,
        asleep_since=datetime.fromtimestamp(sleep.slept_at or 0, UTC) if is_asleep else None,
        asleep_hours=round(asleep_hours, 3),
        asleep_saved=saved_by(asleep_hours, mapping.placed_resources(revision).accelerator, prices),
        currency=prices.currency,
        start_seconds=sleep.start_s if recorded.scaling.may_sleep else None,
        template_changes=revision.template_changes if revision.stopped_at is None else "",
    )


def _placement_view(revision: Revision) -> PlacementView | None:
    if not revision.accelerator:
        return None
    runs = mapping.placed_resources(revision)
    why = str(revision.placement.get("why", ""))
    return PlacementView(revision.accelerator, runs.accelerator, runs.products, why)
