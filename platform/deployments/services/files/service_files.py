"""Service file application: creates or changes a service, in a change under its lock or in a plan."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.services import audit_record
from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_chosen
from clusters.services.connection import allows_python
from common.errors import Conflict, InvalidInput
from common.images import refusal
from deployments.domain.service_file import (
    ServiceSpec,
    access_json,
    check_cors,
    check_env,
    check_format,
    cors_json,
    is_code,
    limits_json,
    parse_service,
    refuse_on,
    rolling_json,
    stored_access,
)
from deployments.domain.service_file.clusters import LOCAL, containers_of
from deployments.domain.service_file.environment import secrets_of
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.desired import Role
from deployments.domain.service_state.owner import Owner, owner_json
from deployments.models import InferenceService, Rollout, RolloutPolicy
from deployments.reconcile import hints
from deployments.reconcile.service_change import Change, changing
from deployments.reconcile.service_plan import planning
from deployments.services.files.import_models import begin_import, must_import
from deployments.services.files.programs import with_records
from deployments.services.ownership import check_owner
from deployments.services.revisions.custom_predictors import check_compares, version_of_image
from deployments.services.revisions.default_pool import in_default_pool
from deployments.services.revisions.demands import check_demands, check_digests
from deployments.services.revisions.egress import check_egress
from deployments.services.revisions.model_pools import check_pool, cluster_asked, pool_named, version_of_pool
from deployments.services.revisions.revision_change import check_ready, turn_to
from deployments.services.revisions.secret_env import check_secrets
from deployments.services.rollout.contracts import accepted
from deployments.services.services import policy_named, spec_of, target_of
from deployments.services.stop import follow_stop
from events.domain.kinds import Kind
from integrations.clusters.base import PREVIEW_SUFFIX, DriftPolicy
from registry.models import ModelVersion
from registry.selectors import model_version_resolve
from registry.services.images import check_has_files


@dataclass(frozen=True, slots=True)
class AppliedFile:
    """A service file to apply, with the rows that it names.

    Attributes:
        version: None where the files are imported first.
        cluster: of a new service.
        pool: None where it names none.
        accept, may_grant_egress, default_access, by: as `service_apply` takes them.
    """

    document: object
    spec: ServiceSpec
    policy: RolloutPolicy | None
    version: ModelVersion | None
    cluster: Cluster
    pool: InferenceService | None
    actor: str
    accept: str | None
    may_grant_egress: bool
    default_access: str | None
    by: Owner | None = None


def service_apply(
    *,
    document: object,
    namespace: str | None,
    name: str | None,
    actor: str,
    now: datetime,
    accept: str | None = None,
    may_grant_egress: bool = False,
    default_access: str | None = None,
    by: Owner | None = None,
) -> tuple[InferenceService, bool]:
    """Create or change the service of a service file; return it and whether it is new.

    A change of its content creates a new revision, and for a live service a rollout to it by the policy of the file.
    Files elsewhere are imported first (`import_models`). The same file again changes nothing, also after a rollback of
    its rollout: that one is retried; only a failed import starts again.

    Args:
        accept: why `actor` accepts what would break clients; None where that is refused.
        may_grant_egress: whether `actor` administers the installation, and so may give the service egress.
        default_access: who may call it where it is new and its file does not say; None is the installation's default on
            this machine, and everybody elsewhere.
        by: the object whose file it is, which the service follows from then on; None for API and pages.

    Raises:
        InvalidInput: the file is wrong, names files elsewhere that may not be imported, or sets a variable that the
            model's process does not get, or names a secret that is missing.
        NotFound: the model, version, alias, policy or cluster it names does not exist.
        Conflict: the version is not READY, or not approved where its model requires that; the service is being deleted,
            or runs on another cluster, or follows an object other than `by`; its policy does not meet a demand of the
            team or the namespace.
        ContractBroken: it would break clients of the live revision.
        NotPermitted: it has `egress: true`, which the service lacks, and the actor may not grant it.
    """
    document = with_records(document, namespace=namespace, name=name, now=now)
    with transaction.atomic():
        applied = _read(
            document=document,
            namespace=namespace,
            name=name,
            actor=actor,
            now=now,
            accept=accept,
            may_grant_egress=may_grant_egress,
            default_access=default_access,
            by=by,
        )
        service, created = InferenceService.objects.get_or_create(
            namespace=applied.spec.namespace, name=applied.spec.name, defaults=_new_columns(applied, now)
        )
        with changing(service.pk, now=now) as change:
            _follow_file(change, applied, created=created)
    return change.service, created


def service_planned(
    *,
    document: object,
    namespace: str | None,
    name: str | None,
    actor: str,
    now: datetime,
    accept: str | None = None,
    may_grant_egress: bool = False,
    default_access: str | None = None,
    by: Owner | None = None,
) -> tuple[Change, Rollout | None, bool]:
    """Return the plan of `service_apply`, the rollout it starts and whether the service is new. Writes nothing.

    Args:
        document: with the records of its programs (`with_records`).

    Raises what `service_apply` raises.
    """
    applied = _read(
        document=document,
        namespace=namespace,
        name=name,
        actor=actor,
        now=now,
        accept=accept,
        may_grant_egress=may_grant_egress,
        default_access=default_access,
        by=by,
    )
    named = {"namespace": applied.spec.namespace, "name": applied.spec.name}
    found = InferenceService.objects.filter(**named).first()
    service = InferenceService(**named, **_new_columns(applied, now)) if found is None else found
    with planning(service, now=now) as change:
        rollout = _follow_file(change, applied, created=found is None)
    return change, rollout, found is None


def _read(
    *,
    document: object,
    namespace: str | None,
    name: str | None,
    actor: str,
    now: datetime,
    accept: str | None,
    may_grant_egress: bool,
    default_access: str | None,
    by: Owner | None = None,
) -> AppliedFile:
    spec = parse_service(document, namespace=namespace, name=name)
    _refuse_name_of_preview(spec)
    policy = None if spec.policy is None else policy_named(spec.policy, field="spec.rollout.policy")
    if spec.is_imported and accept is not None:
        raise InvalidInput(
            "accept_contract_changes is for a version that is there; apply the file, and where its import is refused "
            "for what it changes start a rollout to the version",
            field="accept_contract_changes",
        )
    is_registered = spec.custom is None and spec.model_pool is None and not spec.is_imported
    version = model_version_resolve(uri=spec.storage_uri) if is_registered else None
    if version is not None:
        check_ready(version)
        check_has_files(version)
        check_format(spec.model_format, version.platform, str(version))
    document, spec = in_default_pool(document, spec, version, policy)
    pool = pool_named(spec)
    cluster = cluster_chosen(cluster_asked(spec, pool), now=now)
    return AppliedFile(
        document, spec, policy, version, cluster, pool, actor, accept, may_grant_egress, default_access, by
    )


def _new_columns(applied: AppliedFile, now: datetime) -> dict[str, Any]:
    return {
        "cluster": applied.cluster,
        "document": applied.document,
        "policy": applied.policy,
        "model_version": applied.version,
        "reason": "its first revision is being started",
        "created_at": now,
        "created_by": applied.actor,
    }


def _follow_file(change: Change, applied: AppliedFile, *, created: bool) -> Rollout | None:
    """Change the service to its file, and return the rollout started for it; None where none was."""
    service, spec, actor = change.service, applied.spec, applied.actor
    _refuse_if_deleting(service)
    check_owner(service, applied.by)
    refuse_on(service.cluster.kind, spec)
    runs_code = is_code(spec.model_format if applied.version is None else applied.version.platform)
    check_env(spec, is_code=runs_code and allows_python(service.cluster))
    for field, secret_env in secrets_of(spec).items():
        check_secrets(service.cluster, service.namespace, secret_env, field=field)
    earlier = None if created else spec_of(service)
    granted = check_egress(
        wanted=spec.egress is True,
        before=earlier,
        stable=change.revision(Role.STABLE),
        cluster=service.cluster,
        may_grant=applied.may_grant_egress,
    )
    _check_stays(service, spec.cluster)
    check_pool(service, spec, earlier, applied.pool)
    is_to_import = must_import(service, earlier, spec)
    if applied.by is not None and service.owner_object != owner_json(applied.by):
        service.owner_object = owner_json(applied.by)
    if created:
        change.event(Kind.SERVICE_CREATED, f"service {service} was created by {actor}")
    elif earlier == spec and not is_to_import:
        return None
    else:
        change.event(Kind.SERVICE_CHANGED, f"service {service} was changed by {actor}")
    _check_images(spec, earlier)
    check_digests(service, spec)
    check_compares(spec, applied.policy)
    if earlier is None or earlier.policy != spec.policy:
        check_demands(service, applied.policy)
    before = None if created else {"document": service.document}
    service.document, service.policy = applied.document, applied.policy
    service.drift_policy = spec.drift or DriftPolicy.HEAL
    service.request_timeout_s, service.rolling = spec.request_timeout_s, rolling_json(spec.rolling)
    service.access, service.cors = _access(service, applied, created=created), cors_json(spec.cors)
    check_cors(spec.cors, stored_access(service.access))
    if spec.limits is not None:
        service.limits = limits_json(spec.limits)
    service.alias_problem = ""
    follow_stop(change, spec, actor=actor)
    rollout = None
    if is_to_import:
        begin_import(change, spec, actor=actor)
    elif (version := _served(change, applied)) is not None:
        service.model_version, service.awaited_import, service.import_note = version, None, ""
        rollout = turn_to(
            change,
            spec=spec,
            version=version,
            policy=applied.policy,
            actor=actor,
            by="a newer service file",
            accept=applied.accept,
        )
    detail = {
        **(accepted(Contract.stored(rollout.contract or {})) if rollout is not None else {}),
        **({"egress": "granted"} if granted else {}),
    }
    change.write(
        lambda: audit_record(
            actor=actor,
            action="service.apply",
            target=target_of(service),
            now=change.now,
            before=before,
            after={"document": applied.document},
            detail=detail or None,
        )
    )
    change.write(lambda: hints.reconcile_soon(service.pk))
    return rollout


def _access(service: InferenceService, applied: AppliedFile, *, created: bool) -> Any:
    """Return who may call the service: as the file says, else as before, and if it is new by default."""
    if applied.spec.access is not None:
        return access_json(applied.spec.access)
    if created and applied.default_access is not None:
        return applied.default_access
    if created and service.cluster.kind == LOCAL:
        return settings.DEFAULT_ACCESS
    return service.access


def _check_images(spec: ServiceSpec, earlier: ServiceSpec | None) -> None:
    """Raise InvalidInput where a file newly names an image that the installation does not allow."""
    before = {} if earlier is None else containers_of(earlier)
    for container, its in containers_of(spec).items():
        if its.working_dir or its == before.get(container):
            continue
        if why := refusal(its.image, settings.ALLOWED_REGISTRIES):
            raise InvalidInput(f"{container}.image: {why}", field=f"{container}.image")


def _served(change: Change, applied: AppliedFile) -> ModelVersion | None:
    """Return the version of a file: that of its image or pool, the named one, or the imported one once it is."""
    if applied.spec.model_pool is not None:
        return version_of_pool(change, applied.spec, actor=applied.actor)
    if applied.spec.custom is not None:
        return version_of_image(change, applied.spec, actor=applied.actor)
    service = change.service
    return applied.version or (service.model_version if service.awaited_import is None else None)


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


def _check_stays(service: InferenceService, asked: str) -> None:
    """Raise Conflict where a file names another cluster than the service's."""
    if asked and asked != service.cluster.name:
        raise Conflict(
            f"spec.cluster is {asked[:80]!r}, but service {service} runs on {service.cluster.name!r} and cannot move "
            "while it exists; give it another name there, move its clients, and delete this one",
            field="spec.cluster",
        )
