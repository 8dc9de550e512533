"""Mapping between database rows and domain values. No queries here."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from deployments.domain.analysis.verdict import Verdict
from deployments.domain.autoscaling.model_copies import copies_of
from deployments.domain.autoscaling.scale_to_zero import stored_sleep
from deployments.domain.phases import Code, Phase, Reason
from deployments.domain.policy import Policy, Strategy, match_json, stored_match, stored_policy
from deployments.domain.rollout import Portion, RolloutState, approvals
from deployments.domain.service_file import (
    PATCHES,
    ServiceSpec,
    companion_json,
    custom_json,
    is_code,
    logger_json,
    model_pool_json,
    parse_service,
    patches_json,
    placement_json,
    pod_json,
    secret_env_json,
    stored_access,
    stored_companion,
    stored_cors,
    stored_custom,
    stored_limits,
    stored_logger,
    stored_model_pool,
    stored_patches,
    stored_placement,
    stored_pod,
    stored_rolling,
    stored_secret_env,
)
from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_state.batch_size import found_batch_size, with_batch_size
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState
from deployments.domain.waits import Condition, ServiceFacts, condition_of
from deployments.models import Approval, InferenceService, Revision, Rollout
from integrations.clusters.base import CompanionKind, DriftPolicy, Patch, Resources, behavior_from_json, behavior_json
from registry.domain.lineage import origin_of
from registry.models import ModelVersion


def rollout_state(row: Rollout, policy: Policy | None = None) -> RolloutState:
    """Return the state machine's state of a row.

    Args:
        policy: the row's policy, where it is parsed already (`deployments.reconcile.service_change`).
    """
    return RolloutState(
        policy=stored_policy(row.policy_document) if policy is None else policy,
        phase=Phase(row.phase),
        reason=Reason(Code(row.reason_code), row.reason_message),
        attempt_started_at=row.attempt_started_at,
        attempt=row.attempt,
        step_index=row.step_index,
        portion=Portion(row.weight, row.mirror, stored_match(row.match)),
        verdict=Verdict(row.verdict),
        confirmed_at=row.confirmed_at,
        waiting_since=row.waiting_since,
        finished_at=row.finished_at,
        restart_baseline=row.restart_baseline,
        deadline_at=row.deadline_at,
        full_replicas=row.full_replicas,
    )


def put_rollout(row: Rollout, state: RolloutState) -> None:
    """Write the state machine's state into a row, which the caller saves."""
    row.phase = state.phase
    row.reason_code, row.reason_message = state.reason.code, state.reason.message
    row.attempt, row.attempt_started_at = state.attempt, state.attempt_started_at
    row.step_index, row.verdict = state.step_index, state.verdict
    row.weight, row.mirror, row.match = state.portion.weight, state.portion.mirror, match_json(state.portion.match)
    row.confirmed_at, row.waiting_since, row.finished_at = state.confirmed_at, state.waiting_since, state.finished_at
    row.deadline_at, row.full_replicas = state.deadline_at, state.full_replicas
    row.restart_baseline = None if state.restart_baseline is None else dict(state.restart_baseline)


def approval_subject(row: Rollout, state: RolloutState) -> approvals.Subject:
    """Return the subject of an approval of the rollout given now; its new revision must be loaded."""
    revision = row.to_revision
    runs = placed_resources(revision)  # not what its file leaves open
    configuration = [
        revision.model_config,
        revision.env,
        revision.cpu_cores,
        revision.memory_bytes,
        *([runs.accelerator] if runs.accelerator else []),
        *([runs.products] if runs.products else []),
        *([revision.placement_wish] if revision.placement_wish else []),
        _scaling_of_approval(scaling_of(revision)),
        *([revision.logger] if revision.logger else []),
        *([revision.patches] if any(revision.patches.values()) else []),
        *([revision.transformer] if revision.transformer else []),
        *([{"explainer": revision.explainer}] if revision.explainer else []),
        *([{"custom": revision.custom}] if revision.custom else []),
        *([{"pod": revision.pod}] if revision.pod else []),
        *([{"model_pool": revision.model_pool}] if revision.model_pool else []),
        *([{"pool": revision.pool}] if revision.pool else []),
        *([{"own": revision.own_scaling}] if revision.own_scaling else []),
        *(["egress"] if revision.egress else []),
        *([{"secret_env": revision.secret_env}] if revision.secret_env else []),
    ]
    return approvals.Subject(
        state.attempt,
        state.approval_step,
        revision.artifact_digest,
        _digest_of(configuration),
        _digest_of(row.policy_document),
    )


def approval(row: Approval, allowed: Iterable[int]) -> approvals.Approval:
    """Return an approval as a domain value; its user must be loaded, and `allowed` are those who may approve now."""
    subject = approvals.Subject(
        row.attempt, row.step_index, row.artifact_digest, row.configuration_digest, row.policy_digest
    )
    lost_right = "" if row.user_id in allowed else f"{row.user.username} may not approve here any more"
    return approvals.Approval(
        row.pk, row.user.username, subject, row.given_at, row.used_at, row.withdrawn_at, lost_right
    )


def authors(row: Rollout) -> list[approvals.Author]:
    """Return the people behind the rollout."""
    return [approvals.Author(**author) for author in row.authors]


def _digest_of(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def model_config_of(version: ModelVersion, said: Mapping[str, object], kept: int | None = None) -> dict[str, object]:
    """Return the overrides of a version's own configuration, where a service's file has `said`.

    Args:
        kept: the revision's `kept_batch_size`.
    """
    return with_batch_size(said, version.profile, version.signature, version.source_name, kept)


def found_batch_size_of(row: Revision) -> int:
    """Return the batch size found for a revision; 0 where its file has one, or none was found."""
    return found_batch_size(row.model_config, row.model_version.profile, row.kept_batch_size)


def revision_state(row: Revision) -> RevisionState:
    """Return a revision as a domain value; its model version must be loaded."""
    return RevisionState(
        name=row.name,
        role=Role(row.role),
        model_version=str(row.model_version.number),
        artifact_uri=row.artifact_uri,
        artifact_digest=row.artifact_digest,
        artifact_origin=origin_of(row.model_version.lineage),
        artifact_bytes=row.model_version.size_bytes,
        replicas=row.replicas,
        model_config=model_config_of(row.model_version, row.model_config, row.kept_batch_size),
        env=row.env,
        secret_env=stored_secret_env(row.secret_env),
        is_code=is_code(row.model_version.platform),
        egress=row.egress,
        resources=placed_resources(row),
        arrangement=stored_placement(row.placement_wish).replicas,
        pod=stored_pod(row.pod),
        pod_templates=row.pod_templates,
        served_until=row.served_until,
        logger=stored_logger(row.logger),
        patches=(*stored_patches(row.patches.get("cluster", ()), "patches of the cluster"), *patches_of_service(row)),
        scaling=scaling_of(row),
        transformer=stored_companion(row.transformer, CompanionKind.TRANSFORMER),
        custom=stored_custom(row.custom),
        transformer_replicas=row.transformer_replicas,
        explainer=stored_companion(row.explainer, CompanionKind.EXPLAINER),
        explainer_replicas=row.explainer_replicas,
        retire_at=row.retire_at,
        stopped_at=row.stopped_at,
        model_pool=stored_model_pool(row.model_pool),
        pool=row.pool,
        pool_copies=copies_of(row.load),
        slept_at=stored_sleep(row.load).slept_at,
        own_scaling=own_scaling_of(row),
        own_replicas=row.own_replicas,
        own_since=float(row.load.get("own_since", 0.0)),
    )


def egress_of(row: Revision) -> bool:
    """Return whether a revision's model may open connections on a cluster that runs code; rows of an earlier release
    need their model version loaded.
    """
    return is_code(row.model_version.platform) if row.egress is None else row.egress


def resources_of(row: Revision) -> Resources:
    """Return the resource requests of one replica of a revision."""
    return Resources(row.cpu_cores, row.memory_bytes, row.accelerator)


def _scaling_of_approval(scaling: Scaling) -> dict[str, Any]:
    """Return the scaling that an approval covers; defaults are left out, so that older approvals still match."""
    said = asdict(scaling)
    del said["behavior"]
    behavior = behavior_json(scaling.behavior)
    return {**said, "behavior": behavior} if behavior else said


def placed_resources(row: Revision) -> Resources:
    """Return the resources requested of the cluster: where the file leaves the GPU open, with the one chosen."""
    placed = row.placement
    if not placed:
        return resources_of(row)
    return Resources(row.cpu_cores, row.memory_bytes, placed["accelerator"], tuple(placed["products"]))


def patches_of_service(row: Revision) -> tuple[Patch, ...]:
    """Return the patches of the service's file when the revision was created."""
    return stored_patches(row.patches.get("service", ()), PATCHES)


def scaling_of(row: Revision) -> Scaling:
    """Return the scaling of a revision."""
    return Scaling(
        min_replicas=row.min_replicas,
        max_replicas=row.max_replicas,
        metric=row.scale_metric or None,
        target=row.scale_target,
        container_concurrency=row.container_concurrency,
        behavior=behavior_from_json(row.scale_behavior),
    )


def scaling_columns(scaling: Scaling) -> dict[str, Any]:
    """Return a revision's scaling columns."""
    return {
        "min_replicas": scaling.min_replicas,
        "max_replicas": scaling.max_replicas,
        "scale_metric": scaling.metric or "",
        "scale_target": scaling.target,
        "container_concurrency": scaling.container_concurrency,
        "scale_behavior": behavior_json(scaling.behavior),
    }


def own_scaling_of(row: Revision) -> Scaling | None:
    """Return the scaling of the replicas that load may earn a revision in a pool; None for none."""
    its = dict(row.own_scaling)
    return Scaling(**{**its, "behavior": behavior_from_json(its["behavior"])}) if its else None


def own_scaling_json(scaling: Scaling | None) -> dict[str, Any]:
    """Return what `own_scaling_of` reads; empty for None."""
    return {} if scaling is None else {**asdict(scaling), "behavior": behavior_json(scaling.behavior)}


def put_revision(row: Revision, state: RevisionState) -> None:
    """Write a revision's state into its row, which the caller saves; its content never changes."""
    row.role, row.retire_at, row.stopped_at = state.role, state.retire_at, state.stopped_at


def service_state(
    service: InferenceService, revisions: Iterable[RevisionState], state: RolloutState | None
) -> ServiceState:
    """Return a service as a domain value; `state` is that of the rollout in progress."""
    revisions = tuple(revisions)
    return ServiceState(
        namespace=service.namespace,
        name=service.name,
        live=service.live_at is not None,
        canary=Portion() if state is None else state.portion,
        affinity=None if state is None else state.policy.affinity,
        is_shadow=state is not None and state.step is not None and state.policy.strategy is Strategy.SHADOW,
        shares_replicas=state is not None and not state.policy.surge,
        has_preview=state is not None and state.policy.strategy is Strategy.BLUE_GREEN,
        stopped=service.stopped,
        restart_number=service.restart_number,
        compared_percent=0.0 if state is None or state.comparison is None else state.comparison.sample_percent,
        recorded_percent=service.recorded_percent,
        kept_percent=service.kept_percent,
        drift=DriftPolicy(service.drift_policy),
        request_timeout_s=service.request_timeout_s,
        rolling=stored_rolling(service.rolling),
        access=stored_access(service.access).callers,
        cors=stored_cors(service.cors),
        limits=stored_limits(service.limits),
        revisions=revisions,
        shared_with=_shared_with(service) if any(each.model_pool is not None for each in revisions) else (),
    )


def _shared_with(pool: InferenceService) -> tuple[str, ...]:
    found = parse_service(pool.document, namespace=pool.namespace, name=pool.name).model_pool
    return () if found is None else tuple(each for each in found.shared_with if each != pool.namespace)


def put_live(service: InferenceService, state: ServiceState, now: datetime) -> None:
    """Write into the service's row, which the caller saves, that it is live."""
    if state.live and service.live_at is None:
        service.live_at = now


def service_facts(service: InferenceService) -> ServiceFacts:
    """Return the facts of the service's row that explain why it waits; one that awaits an import needs that loaded."""
    awaited = service.awaited_import
    return ServiceFacts(
        deleting=service.deleting_at is not None,
        live=service.live_at is not None,
        stopped=service.stopped,
        standing=Condition(service.standing) if service.standing else None,
        reason=service.reason,
        import_note=service.import_note,
        import_failed=awaited is not None and awaited.ended_badly,
        alias_problem=service.alias_problem,
    )


def put_wait(service: InferenceService, now: datetime) -> None:
    """Write the service's wait condition into its row, which the caller saves, and its beginning if it is new."""
    condition = condition_of(service_facts(service)) or ""
    if condition != service.waits_for:
        service.waits_for, service.waits_since = condition, now


def put_searched(service: InferenceService) -> None:
    """Write the text for searches into the service's row, which the caller saves."""
    model = "" if service.model_version is None else service.model_version.model.name
    service.searched = searched_text(service.namespace, service.name, model)


def searched_text(namespace: str, name: str, model: str) -> str:
    """Return the search text of a service, in lower case."""
    return f"{namespace}/{name} {model}".lower()


def is_what(row: Revision, spec: ServiceSpec, version_id: int | None) -> bool:
    """Return whether the revision has the content of a service file and the version that it names."""
    return (
        row.model_version_id == version_id
        and scaling_of(row) == spec.scaling
        and row.model_config == dict(spec.model_config)
        and row.env == dict(spec.env)
        and row.secret_env == secret_env_json(spec.secret_env)
        and row.logger == logger_json(spec.logger)
        and row.patches.get("service", []) == patches_json(spec.patches)
        and row.transformer == companion_json(spec.transformer, CompanionKind.TRANSFORMER)
        and row.explainer == companion_json(spec.explainer, CompanionKind.EXPLAINER)
        and row.custom == custom_json(spec.custom)
        and row.placement_wish == placement_json(spec.placement)
        and resources_of(row) == spec.resources
        and row.pod == pod_json(spec.pod)
        and row.model_pool == model_pool_json(spec.model_pool)
        and row.pool == spec.pool
        and own_scaling_of(row) == spec.own_scaling
        and (spec.egress is None or spec.egress == egress_of(row))
    )
