"""Revision change: moves a service to another revision, for applied files, moved aliases and people's commands.

Called with the service under its lock.
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from clusters.domain.pods import check_pod_fields
from clusters.domain.resources import limit_of
from clusters.models import Cluster
from clusters.services.connection import file_of
from clusters.services.prometheus import prometheus_of
from common.errors import Conflict, InvalidInput
from deployments import mapping
from deployments.domain import rollout as machine
from deployments.domain.policy import DIRECT, Policy, Strategy, Then, policy_json, stored_policy
from deployments.domain.rollout import Portion, RolloutState
from deployments.domain.rollout.approvals import Author
from deployments.domain.service_file import (
    ServiceSpec,
    companion_json,
    custom_json,
    logger_json,
    model_pool_json,
    patches_json,
    placement_json,
    pod_json,
    secret_env_json,
)
from deployments.domain.service_file.clusters import LOCAL
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.desired import Role
from deployments.models import Revision, Rollout, RolloutPolicy
from deployments.reconcile.service_change import Change
from deployments.selectors import stable_before
from deployments.services.revisions.custom_predictors import check_compares, check_serves
from deployments.services.revisions.demands import check_demands, check_rolled_out
from deployments.services.revisions.egress import egress_after
from deployments.services.revisions.gpu_assignment import placed
from deployments.services.revisions.model_pools import check_pooled
from deployments.services.rollout.contracts import contract_agreed, kept_from
from events.domain.kinds import Kind
from integrations.clusters.base import CompanionKind, PodFields
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion

_AFTER_SHADOW = {
    Then.PAUSE: "it waits for somebody to promote it",
    Then.PROMOTE: "all traffic",
    Then.END: "it ends",
}


def check_ready(version: ModelVersion) -> None:
    """Raise Conflict unless the version can be served."""
    if version.status == Status.READY:
        return
    why = f" ({version.reason})" if version.reason else ""
    what_to_do = "wait for its check to end" if version.status == Status.PENDING else "register a better one"
    raise Conflict(f"{version} is {version.status}, not READY{why}; {what_to_do}")


def check_agreed(version: ModelVersion) -> None:
    """Raise Conflict where the version lacks the approvals that its model requires."""
    if version.unfit:
        raise Conflict(f"{version} {version.unfit}")


def check_measurable(policy: Policy, cluster: Cluster) -> None:
    """Raise Conflict where the policy queries Prometheus and none is configured for the cluster.

    Such a policy may still be saved: the file is fit for other installations, and Prometheus may come later.
    """
    asked = sorted({metric.name for step in policy.steps if step.gate for metric in step.gate.metrics})
    if asked and prometheus_of(cluster) is None:
        or_file = f", or `prometheus` in the file of cluster {cluster.name}" if cluster.document else ""
        raise Conflict(
            f"policy {policy.name} measures {', '.join(asked)} by queries to Prometheus, and none is configured; set "
            f"FAIRLEAD_PROMETHEUS_URL for web and worker{or_file}, or take a policy without `metrics`"
        )


def turn_to(
    change: Change,
    *,
    spec: ServiceSpec,
    version: ModelVersion,
    policy: RolloutPolicy | None,
    actor: str,
    by: str,
    behind: Iterable[Author] = (),
    accept: str | None = None,
) -> Rollout | None:
    """Bring the service to the content of `spec` and `version`, and return the rollout started for it.

    None is started where the newest desired content is there already: stable has it (then a rollout to other content is
    aborted), or a rollout to it is in progress. While the service is not live there is no traffic to protect: its
    revision is replaced; if clients will return, by none that would break them.

    Args:
        by: the cause, such as `the service file`; superseded rollouts name it.
        behind: the people who caused it, where the platform acts by itself.
        accept: why `actor` accepts what would break clients; None where that is refused.

    Raises:
        Conflict: the version cannot be served, is not approved where its model requires that, or does not fit; the
            policy does not meet a demand of the team or the namespace.
        ContractBroken: it would break clients of the live one.
    """
    stable = change.revision(Role.STABLE)
    check_ready(version)
    check_serves(spec, version)
    check_pooled(spec, version, None, is_local=change.service.cluster.kind == LOCAL)
    if stable is None or change.service.live_at is None:
        if stable is None or not mapping.is_what(stable, spec, version.pk):
            check_agreed(version)
            check_demands(change.service, policy)
            check_rolled_out(change.service, stable, version)
            _replace(change, stable, spec=spec, version=version, actor=actor, accept=accept)
        return None
    going = change.rollout
    if going is not None and mapping.is_what(going.to_revision, spec, version.pk):
        return None
    if mapping.is_what(stable, spec, version.pk):
        give_up(change, by)
        return None
    return begin(
        change, stable, spec=spec, version=version, policy=policy, actor=actor, by=by, behind=behind, accept=accept
    )


def begin(
    change: Change,
    stable: Revision,
    *,
    spec: ServiceSpec,
    version: ModelVersion,
    policy: RolloutPolicy | None,
    actor: str,
    by: str,
    behind: Iterable[Author] = (),
    accept: str | None = None,
) -> Rollout:
    """Start a rollout to a new revision; one in progress is superseded. Without a policy there are no steps.

    Raises:
        Conflict: the version is another one, and lacks the required approvals; the policy does not meet a demand.
        ContractBroken: it would break clients of the stable revision, and the breaks are not accepted.
    """
    check_serves(spec, version)
    if version.pk != stable.model_version_id:
        check_agreed(version)
    contract = contract_agreed(stable, spec=spec, version=version, accept=accept, actor=actor)
    chosen = DIRECT if policy is None else stored_policy(policy.document)
    check_demands(change.service, None if policy is None else chosen)
    check_measurable(chosen, change.service.cluster)
    check_compares(spec, chosen, stable)
    check_pooled(spec, version, chosen, is_local=change.service.cluster.kind == LOCAL)
    give_up(change, by)
    replicas = spec.scaling.within(stable.replicas)
    placement = placed(change.service, spec, version, replicas, in_place=not chosen.surge)
    egress = egress_after(spec, stable, change.service.cluster)
    canary = _create_revision(
        change, spec, version, Role.CANARY, after=stable, actor=actor, placement=placement, egress=egress
    )
    if not chosen.surge:
        canary.replicas = 0  # until stable has given up some
        change.write(partial(canary.save, update_fields=["replicas"]))
    version_of_policy = 0 if policy is None else policy.version
    started = machine.start(chosen, change.now)
    row = _add_rollout(
        change,
        stable,
        canary,
        state=started,
        actor=actor,
        policy_version=version_of_policy,
        behind=behind,
        contract=contract,
    )
    change.event(
        Kind.ROLLOUT_STARTED,
        lambda: (
            f"rollout {row.pk} from {stable.name} (version {stable.model_version.number}) to {canary.name} (version "
            f"{version.number}) was started by {actor}, {_how(chosen)}{_knowingly(contract, actor)}"
        ),
        revision=canary.name,
        rollout=row,
    )
    return row


def begin_back(change: Change, stable: Revision, earlier: Revision, *, actor: str) -> Rollout:
    """Start a rollout without steps back to a former stable revision; one in progress is superseded.

    The revision itself returns, under its name: its content never changed. Where it still runs nothing is started, and
    the reconciler's next tick moves the traffic.
    """
    give_up(change, f"the rollback to {earlier.name}")
    if all(revision.pk != earlier.pk for revision in change.revisions):
        change.revisions = sorted([*change.revisions, earlier], key=lambda revision: revision.number)
    earlier = next(revision for revision in change.revisions if revision.pk == earlier.pk)
    is_warm = earlier.stopped_at is None
    earlier.role, earlier.retire_at, earlier.stopped_at = Role.CANARY, None, None
    change.write(partial(earlier.save, update_fields=["role", "retire_at", "stopped_at"]))
    # Its restarts from before are not this rollout's.
    started = replace(machine.start(DIRECT, change.now), restart_baseline=None)
    row = _add_rollout(change, stable, earlier, state=started, actor=actor)
    how = "it still runs, so all traffic moves at once" if is_warm else "all traffic moves when it is ready again"
    change.event(
        Kind.ROLLBACK_STARTED,
        lambda: (
            f"rollout {row.pk} back from {stable.name} (version {stable.model_version.number}) to {earlier.name} "
            f"(version {earlier.model_version.number}) was started by {actor}; {how}"
        ),
        revision=earlier.name,
        rollout=row,
    )
    return row


def _add_rollout(
    change: Change,
    stable: Revision,
    canary: Revision,
    *,
    state: RolloutState,
    actor: str,
    policy_version: int = 0,
    behind: Iterable[Author] = (),
    contract: Contract | None = None,
) -> Rollout:
    row = Rollout(
        service=change.service,
        from_revision=stable,
        to_revision=canary,
        policy_name=state.policy.name,
        policy_version=policy_version,
        policy_document=policy_json(state.policy),
        contract=None if contract is None else contract.as_json(),
        started_at=change.now,
        reason_since=change.now,
        created_by=actor,
        authors=[asdict(author) for author in _authors(canary.model_version, actor, behind)],
    )
    mapping.put_rollout(row, state)
    change.write(row.save)
    change.newest = row
    change.is_changed = True
    return row


def _authors(version: ModelVersion, actor: str, behind: Iterable[Author]) -> Iterable[Author]:
    """Return the people behind a rollout, whom a policy may exclude from approving it."""
    yield Author(actor, "started the rollout")
    yield from behind
    yield Author(version.created_by, f"registered {version}")
    if version._state.adding:  # planned, and not written yet
        return
    for imported_by in version.imports.values_list("created_by", flat=True).distinct():
        yield Author(imported_by, f"imported {version}")


def give_up(change: Change, by: str) -> None:
    """Supersede the rollout in progress, if any."""
    if change.rollout is not None:
        state = change.rollout_state(change.rollout)
        change.move(change.rollout, machine.supersede(state, change.now, by))


def _replace(
    change: Change, old: Revision | None, *, spec: ServiceSpec, version: ModelVersion, actor: str, accept: str | None
) -> None:
    """Replace a revision that never served, or that served until the service was stopped, by a new one."""
    knowingly, served = "", None
    if old is not None:
        served = old if old.served_until is not None else stable_before(stable=old)
        if served is not None:
            contract = contract_agreed(served, spec=spec, version=version, accept=accept, actor=actor)
            knowingly = _knowingly(contract, actor)
        old.role, old.stopped_at = Role.RETIRED, change.now
        change.write(partial(old.save, update_fields=["role", "stopped_at"]))
        until = "before it served" if old.served_until is None else "before it served again"
        change.event(Kind.REVISION_STOPPED, f"{old.name} was replaced {until}{knowingly}", revision=old.name)
    placement = placed(change.service, spec, version, spec.scaling.least, in_place=True)
    egress = egress_after(spec, old, change.service.cluster)
    _create_revision(change, spec, version, Role.STABLE, after=served, actor=actor, placement=placement, egress=egress)


def _knowingly(contract: Contract, actor: str) -> str:
    return f"; {actor} accepted that {'; '.join(contract.breaks)}" if contract.breaks else ""


def _create_revision(
    change: Change,
    spec: ServiceSpec,
    version: ModelVersion,
    role: Role,
    *,
    after: Revision | None,
    actor: str,
    placement: dict[str, Any],
    egress: bool,
) -> Revision:
    service = change.service
    _refuse_without_image(service.cluster, spec)
    check_pod(service.cluster, spec.pod)
    service.revision_seq += 1
    revision = Revision(
        service=service,
        number=service.revision_seq,
        name=f"{service.name}-{service.revision_seq:05d}",
        model_version=version,
        artifact_digest=version.digest,
        artifact_uri=version.artifact_uri,
        **mapping.scaling_columns(spec.scaling),
        replicas=spec.scaling.least,
        model_config=dict(spec.model_config),
        kept_batch_size=kept_from(after, spec, version),
        env=dict(spec.env),
        secret_env=secret_env_json(spec.secret_env),
        egress=egress,
        logger=logger_json(spec.logger),
        patches=_patches(change.service.cluster, spec),
        cpu_cores=spec.resources.cpu_cores,
        memory_bytes=spec.resources.memory_bytes,
        accelerator=spec.resources.accelerator,
        placement=placement,
        placement_wish=placement_json(spec.placement),
        pod=pod_json(spec.pod),
        created_at=change.now,
        created_by=actor,
        transformer=companion_json(spec.transformer, CompanionKind.TRANSFORMER),
        custom=custom_json(spec.custom),
        model_pool=model_pool_json(spec.model_pool),
        pool=spec.pool,
        own_scaling=mapping.own_scaling_json(spec.own_scaling),
        own_replicas=_own_replicas(after, spec),
        transformer_replicas=0 if spec.transformer is None else spec.transformer.min_replicas,
        explainer=companion_json(spec.explainer, CompanionKind.EXPLAINER),
        explainer_replicas=0 if spec.explainer is None else spec.explainer.min_replicas,
        role=role,
    )
    change.write(revision.save)
    change.revisions.append(revision)
    on = f" on {placement['accelerator']}: {placement['why']}" if placement else ""
    connects = "; it may open connections to the network" if egress else ""
    change.event(Kind.REVISION_CREATED, f"{revision.name} serves {version}{on}{connects}", revision=revision.name)
    return revision


def _own_replicas(after: Revision | None, spec: ServiceSpec) -> int:
    """Return how many own replicas a new revision in a pool begins with: as many as the one before has."""
    its = 0 if after is None or after.stopped_at is not None else after.own_replicas
    return spec.own_scaling.within(its) if its and spec.own_scaling is not None else 0


def _refuse_without_image(cluster: Cluster, spec: ServiceSpec) -> None:
    """Raise InvalidInput where a GPU is requested on a cluster whose file has no image that could use it."""
    asked, file = spec.resources.accelerator, file_of(cluster)
    if asked and spec.custom is None and file is not None and not file.options.gpu_runtime_image:
        field = limit_of(spec.resources)
        raise InvalidInput(
            f"{field}: the file of cluster {cluster.name} names no image with CUDA; apply it with gpuRuntimeImage, or "
            "leave the GPU out",
            field=field,
        )


def check_pod(cluster: Cluster, pod: PodFields) -> None:
    """Raise InvalidInput, naming the field, where the cluster's file does not allow these pod fields."""
    if (file := file_of(cluster)) is not None:
        check_pod_fields(file.pods, pod, cluster.name)


def _patches(cluster: Cluster, spec: ServiceSpec) -> dict[str, object]:
    """Return the patches of a new revision; raises InvalidInput where it may have none of its own."""
    file = file_of(cluster)
    if spec.patches and (file is None or not file.allows_service_patches):
        raise InvalidInput(
            f"spec.patches are not allowed on cluster {cluster.name}, since they can make anything of a pod; leave "
            "them out, or have servicePatches: true in the cluster's file",
            field="spec.patches",
        )
    of_cluster = () if file is None else file.patches
    return {"cluster": patches_json(of_cluster), "service": patches_json(spec.patches)}


def _how(policy: Policy) -> str:
    if not policy.steps:
        return "without a policy: all traffic moves when the new revision is ready"
    if policy.strategy is Strategy.SHADOW:
        shares = ", ".join(f"{step.mirror} %" for step in policy.steps)
        return f"by policy {policy.name}: copies of {shares} of the requests, then {_AFTER_SHADOW[policy.then]}"
    if policy.strategy is Strategy.BLUE_GREEN:
        return f"by policy {policy.name}: a preview, then all traffic in one switch"
    portions = [Portion.of(step).short for step in policy.steps if step.weight < 100]
    how = "" if policy.surge else ", without surge"
    return f"by policy {policy.name}: {', '.join([*portions, 'all traffic'])}{how}"
