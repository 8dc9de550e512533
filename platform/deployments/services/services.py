"""Service changes: apply a file, follow an alias, delete."""

from datetime import datetime

from django.db import transaction

from accounts.selectors import audit_list
from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_chosen
from clusters.services.connection import allows_python
from common.errors import Conflict, FairleadError, InvalidInput, NotFound
from deployments.domain.phases import ServicePhase
from deployments.domain.rollout.approvals import Author
from deployments.domain.service_file import (
    ServiceSpec,
    check_env,
    check_format,
    is_code,
    parse_service,
    refuse_on,
    rolling_json,
)
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.desired import Role
from deployments.mapping import placed_resources
from deployments.models import InferenceService, Revision, RolloutPolicy
from deployments.reconcile import hints
from deployments.reconcile.service_change import Change, changing
from deployments.services.contracts import accepted
from deployments.services.egress import check_egress
from deployments.services.import_models import begin_import, must_import
from deployments.services.revision_change import check_ready, give_up, turn_to
from deployments.services.stop import follow_stop
from events.domain.kinds import Kind
from integrations.clusters.base import PREVIEW_SUFFIX, DriftPolicy, Resources
from registry.models import ModelVersion
from registry.selectors import model_version_resolve

PLATFORM = "fairlead"
"""Actor of the platform's own changes in the audit log."""


@transaction.atomic
def service_apply(
    *,
    document: object,
    namespace: str | None,
    name: str | None,
    actor: str,
    now: datetime,
    accept: str | None = None,
    may_grant_egress: bool = False,
) -> tuple[InferenceService, bool]:
    """Create or change the service of a service file; return it and whether it is new.

    A change of its content creates a new revision, and for a live service a rollout to it by the policy of the file.
    Files elsewhere are imported first (`import_models`). The same file again changes nothing, also after a rollback of
    its rollout: that one is retried; only a failed import starts again.

    Args:
        accept: why `actor` accepts what would break clients; None where that is refused.
        may_grant_egress: whether `actor` administers the installation, and so may give the service egress.

    Raises:
        InvalidInput: the file is wrong, names files elsewhere that may not be imported, or sets a variable that the
            model's process does not get.
        NotFound: the model, version, alias, policy or cluster it names does not exist.
        Conflict: the version is not READY, or not approved where its model requires that; the service is being deleted,
            or runs on another cluster.
        ContractBroken: it would break clients of the live revision.
        NotPermitted: it has `egress: true`, which the service lacks, and the actor may not grant it.
    """
    spec = parse_service(document, namespace=namespace, name=name)
    _refuse_name_of_preview(spec)
    policy = None if spec.policy is None else policy_named(spec.policy, field="spec.rollout.policy")
    if spec.is_imported and accept is not None:
        raise InvalidInput(
            "accept_contract_changes is for a version that is there; apply the file, and where its import is refused "
            "for what it changes start a rollout to the version",
            field="accept_contract_changes",
        )
    version = None if spec.is_imported else model_version_resolve(uri=spec.storage_uri)
    if version is not None:
        check_ready(version)
        check_format(spec.model_format, version.platform, str(version))
    service, created = InferenceService.objects.get_or_create(
        namespace=spec.namespace,
        name=spec.name,
        defaults={
            "cluster": cluster_chosen(spec.cluster, now=now),
            "document": document,
            "policy": policy,
            "model_version": version,
            "reason": "its first revision is being started",
            "created_at": now,
            "created_by": actor,
        },
    )
    with changing(service.pk, now=now) as change:
        _refuse_if_deleting(change.service)
        refuse_on(change.service.cluster.kind, spec)
        runs_code = is_code(spec.model_format if version is None else version.platform)
        check_env(spec, is_code=runs_code and allows_python(change.service.cluster))
        earlier = None if created else spec_of(change.service)
        granted = check_egress(
            wanted=spec.egress is True,
            before=earlier,
            stable=change.revision(Role.STABLE),
            cluster=change.service.cluster,
            may_grant=may_grant_egress,
        )
        _check_stays(change.service, spec.cluster)
        is_to_import = must_import(change.service, earlier, spec)
        if created:
            change.event(Kind.SERVICE_CREATED, f"service {service} was created by {actor}")
        elif earlier == spec and not is_to_import:
            return change.service, False
        else:
            change.event(Kind.SERVICE_CHANGED, f"service {service} was changed by {actor}")
        before = None if created else {"document": change.service.document}
        change.service.document, change.service.policy = document, policy
        change.service.drift_policy = spec.drift or DriftPolicy.HEAL
        change.service.request_timeout_s, change.service.rolling = spec.request_timeout_s, rolling_json(spec.rolling)
        change.service.alias_problem = ""
        follow_stop(change, spec, actor=actor)
        rollout = None
        if is_to_import:
            begin_import(change, spec, actor=actor)
        elif (version := version or _imported_before(change.service)) is not None:
            change.service.model_version, change.service.awaited_import, change.service.import_note = version, None, ""
            rollout = turn_to(
                change,
                spec=spec,
                version=version,
                policy=policy,
                actor=actor,
                by="a newer service file",
                accept=accept,
            )
        audit_record(
            actor=actor,
            action="service.apply",
            target=_target(service),
            now=now,
            before=before,
            after={"document": document},
            detail={
                **(accepted(Contract.stored(rollout.contract or {})) if rollout is not None else {}),
                **({"egress": "granted"} if granted else {}),
            }
            or None,
        )
    hints.reconcile_soon(service.pk)
    return change.service, created


@transaction.atomic
def service_delete(*, namespace: str, name: str, actor: str, now: datetime) -> None:
    """Drain the service and remove it; it is in phase Deleting until the cluster has nothing of it.

    Deleting it again meanwhile changes nothing. Raises NotFound.
    """
    service = service_named(namespace, name)
    with changing(service.pk, now=now) as change:
        if change.service.deleting_at is not None:
            return
        give_up(change, "the deletion of the service")
        change.service.deleting_at = now
        change.service.phase, change.service.reason = ServicePhase.DELETING, f"{actor} deletes it; its replicas drain"
        # The cluster must refuse every desired state from before the deletion.
        change.service.generation += 1
        change.event(Kind.SERVICE_DELETING, f"service {service} is being deleted by {actor}")
        before = {"document": change.service.document}
        audit_record(actor=actor, action="service.delete", target=_target(service), now=now, before=before)
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
    there = change.service.model_version
    before = None if there is None else {"version": there.number}
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
        target=_target(change.service),
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


def _imported_before(service: InferenceService) -> ModelVersion | None:
    """Return the version imported from the file's URI; None until the import is done."""
    return service.model_version if service.awaited_import is None else None


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


def _refuse_name_of_preview(spec: ServiceSpec) -> None:
    there = InferenceService.objects.filter(namespace=spec.namespace, name=spec.name)
    if spec.name.endswith(PREVIEW_SUFFIX) and not there.exists():
        raise InvalidInput(
            f"metadata.name is {spec.name!r}, but names that end in {PREVIEW_SUFFIX} are for the preview addresses of "
            "blue/green rollouts; choose another name",
            field="metadata.name",
        )


def _refuse_if_deleting(service: InferenceService) -> None:
    if service.deleting_at is not None:
        raise Conflict(f"service {service} is being deleted; apply its file again once it is gone")


def _target(service: InferenceService) -> str:
    return f"services/{service.namespace}/{service.name}"


def _check_stays(service: InferenceService, asked: str) -> None:
    """Raise Conflict where a file names another cluster than the service's."""
    if asked and asked != service.cluster.name:
        raise Conflict(
            f"spec.cluster is {asked[:80]!r}, but service {service} runs on {service.cluster.name!r} and cannot move "
            "while it exists; give it another name there, move its clients, and delete this one",
            field="spec.cluster",
        )
