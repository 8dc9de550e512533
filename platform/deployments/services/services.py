"""Service changes: follow an alias, delete; and the lookups that other changes share."""

from datetime import datetime

from django.db import transaction

from accounts.selectors import audit_list
from accounts.services import audit_record
from common.errors import FairleadError, NotFound
from deployments.domain.phases import ServicePhase
from deployments.domain.rollout.approvals import Author
from deployments.domain.service_file import (
    ServiceSpec,
    parse_service,
)
from deployments.domain.service_state.owner import Owner
from deployments.mapping import placed_resources
from deployments.models import InferenceService, Revision, RolloutPolicy
from deployments.reconcile import hints
from deployments.reconcile.service_change import Change, changing
from deployments.services.ownership import check_owner
from deployments.services.revisions.model_pools import check_deletable
from deployments.services.revisions.revision_change import give_up, turn_to
from events.domain.kinds import Kind
from integrations.clusters.base import Resources
from registry.models import ModelVersion
from registry.selectors import model_version_resolve

PLATFORM = "fairlead"
"""Actor of the platform's own changes in the audit log."""


@transaction.atomic
def service_delete(*, namespace: str, name: str, actor: str, now: datetime, by: Owner | None = None) -> None:
    """Drain the service and remove it; it is in phase Deleting until the cluster has nothing of it.

    Deleting it again meanwhile changes nothing.

    Args:
        by: the object that it follows and that is deleted; None for API and pages.

    Raises:
        NotFound: no such service.
        Conflict: it follows an object other than `by`, or is a model pool with services in it.
    """
    service = service_named(namespace, name)
    with changing(service.pk, now=now) as change:
        if change.service.deleting_at is not None:
            return
        check_owner(change.service, by)
        check_deletable(change.service)
        give_up(change, "the deletion of the service")
        change.service.deleting_at = now
        change.service.phase, change.service.reason = ServicePhase.DELETING, f"{actor} deletes it; its replicas drain"
        # The cluster must refuse every desired state from before the deletion.
        change.service.generation += 1
        change.event(Kind.SERVICE_DELETING, f"service {service} is being deleted by {actor}")
        before = {"document": change.service.document}
        audit_record(actor=actor, action="service.delete", target=target_of(service), now=now, before=before)
    hints.reconcile_soon(service.pk)


def alias_follow(*, service_id: int, now: datetime) -> None:
    """Roll out the present version of the alias that a service's file names.

    A version that cannot be rolled out is reported once and tried again on every call, since its check may still end.
    """
    read = InferenceService.objects.only("namespace", "name", "document", "model_version_id", "alias_problem")
    service = read.filter(pk=service_id, deleting_at=None).first()
    if service is None:
        return
    spec = spec_of(service)
    if not spec.follows_alias:
        return
    try:
        version = model_version_resolve(uri=spec.storage_uri)
        if version.pk == service.model_version_id:
            _note_alias_problem(service, "", now)
            return
        with changing(service_id, now=now) as change:
            _follow(change, version, now)
    except FairleadError as error:
        _note_alias_problem(service, error.message, now)


def _follow(change: Change, version: ModelVersion, now: datetime) -> None:
    spec = spec_of(change.service)
    if change.service.deleting_at is not None or not spec.follows_alias:
        return
    if change.service.model_version_id == version.pk:
        return  # another worker was faster
    change.event(Kind.ALIAS_MOVED, f"{spec.storage_uri} means version {version.number} now")
    previous = change.service.model_version
    before = None if previous is None else {"version": previous.number}
    change.service.model_version, change.service.alias_problem = version, ""
    policy = change.service.policy
    rollout = turn_to(
        change,
        spec=spec,
        version=version,
        policy=policy,
        actor=PLATFORM,
        by=f"{spec.storage_uri}, which moved",
        behind=_movers_of(spec, version),
    )
    audit_record(
        actor=PLATFORM,
        action="service.follow_alias",
        target=target_of(change.service),
        now=now,
        before=before,
        after={"version": version.number},
        detail={"alias": spec.storage_uri, "rollout": None if rollout is None else rollout.pk},
    )


def _movers_of(spec: ServiceSpec, version: ModelVersion) -> list[Author]:
    """Return who last moved the alias that the service follows."""
    alias = spec.storage_uri.rpartition("@")[2]
    moved = audit_list(target=f"models/{version.model.name}/aliases/{alias}").filter(action="alias.set").first()
    return [] if moved is None else [Author(moved.actor, f"moved the alias {alias}")]


def _note_alias_problem(service: InferenceService, problem: str, now: datetime) -> None:
    if problem == service.alias_problem:
        return
    with changing(service.pk, now=now) as change:
        change.service.alias_problem = problem
        if problem:
            change.event(Kind.ALIAS_REFUSED, f"the version that the service's alias means is not rolled out: {problem}")


def service_named(namespace: str, name: str) -> InferenceService:
    """Return the service; raises NotFound."""
    service = InferenceService.objects.filter(namespace=namespace, name=name).first()
    if service is None:
        raise NotFound(f"there is no service {namespace}/{name}")
    return service


def policy_named(name: str, *, field: str) -> RolloutPolicy:
    """Return the policy; raises NotFound with the field that names it."""
    policy = RolloutPolicy.objects.filter(name=name).first()
    if policy is None:
        raise NotFound(f"{field} names the policy {name!r}, which is not there; apply it first", field=field)
    return policy


def spec_of(service: InferenceService) -> ServiceSpec:
    """Return the spec of the service's file, with the service's name where the file leaves it out."""
    return parse_service(service.document, namespace=service.namespace, name=service.name)


def runs_with(service: InferenceService) -> Resources:
    """Return the resources of the newest revision's replicas; where the file leaves the GPU open, the one chosen."""
    newest = Revision.objects.filter(service=service).order_by("-pk").first()
    return spec_of(service).resources if newest is None else placed_resources(newest)


def target_of(service: InferenceService) -> str:
    """Return the service's path in the audit log."""
    return f"services/{service.namespace}/{service.name}"
