"""Model pools: the version that represents a pool, and which services may be in one."""

from functools import partial

from clusters.models import Cluster
from common.errors import Conflict, InvalidInput
from deployments.domain.policy import Policy, Strategy, stored_policy
from deployments.domain.service_file import POOL, ServiceSpec, imported_model, is_code, parse_service
from deployments.domain.service_file.clusters import LOCAL
from deployments.models import InferenceService, Revision, RolloutPolicy
from deployments.reconcile.service_change import Change
from deployments.services.files.model_owners import give_to_team_of_namespace
from registry.models import ModelVersion
from registry.services.images import image_add, pool_version

_PYTHON = "python"


def version_of_pool(change: Change, spec: ServiceSpec, *, actor: str) -> ModelVersion:
    """Return the version that represents a pool; it is of the model `<namespace>.<pool>`, as imports are."""
    model = imported_model(spec.namespace, spec.name)
    version = pool_version(model=model, now=change.now, actor=actor)
    if version._state.adding:
        change.write(partial(give_to_team_of_namespace, model, spec.namespace, actor=actor, now=change.now))
        change.write(partial(image_add, version, now=change.now, actor=actor))
    return version


def pool_named(spec: ServiceSpec) -> InferenceService | None:
    """Return the pool that a service's file names; raises InvalidInput where the service may not be in it.

    None where it names none.

    A pool of another namespace that is not shared with the service's is answered as one that does not exist.
    """
    if not spec.pool:
        return None
    namespace, _, name = spec.pool.partition("/")
    pools = InferenceService.objects.select_related("cluster")
    found = pools.filter(namespace=namespace, name=name, deleting_at=None).first()
    pool = None if found is None else parse_service(found.document, namespace=namespace, name=name).model_pool
    if found is not None and found.namespace == spec.namespace and pool is None:
        raise InvalidInput(f"{POOL} is {spec.pool!r}, which is a service and no model pool", field=POOL)
    if found is None or pool is None or not pool.takes(namespace, spec.namespace):
        raise InvalidInput(
            f"{POOL} is {spec.pool!r}, but there is no such model pool for services of namespace {spec.namespace}; "
            "apply its file first, or have its owner add the namespace to sharedWith",
            field=POOL,
        )
    return found


def cluster_asked(spec: ServiceSpec, pool: InferenceService | None) -> str:
    """Return the name of the cluster that a file asks for: its own, else its pool's; empty where it leaves it open."""
    return spec.cluster if spec.cluster or pool is None else pool.cluster.name


def check_pool(
    service: InferenceService, spec: ServiceSpec, earlier: ServiceSpec | None, pool: InferenceService | None
) -> None:
    """Raise InvalidInput or Conflict where the file's pool cannot be, or cannot take its service.

    Args:
        pool: the one that the file names, of `pool_named`.
    """
    if earlier is not None and (earlier.model_pool is None) != (spec.model_pool is None):
        what = "is a model pool" if spec.model_pool is None else "is no model pool"
        raise Conflict(f"service {service} {what} and stays so; delete it first, or choose another name")
    pools = {spec.pool, "" if earlier is None else earlier.pool} - {""}
    if service.cluster.kind != LOCAL and len(pools) > 1:
        raise Conflict(
            f"{POOL} is {spec.pool!r}, and service {service} is in another pool; on Kubernetes it moves there by way "
            "of replicas of its own, so leave the pool out first, and name this one once that is rolled out",
            field=POOL,
        )
    if pool is not None:
        _check_cluster(service.cluster, pool, spec.pool)


def check_pooled(
    spec: ServiceSpec, version: ModelVersion, policy: Policy | RolloutPolicy | None, *, is_local: bool
) -> None:
    """Raise InvalidInput where replicas of a pool cannot serve the version, or its policy needs more of them.

    Args:
        is_local: whether it runs on the local cluster, whose pools run models in Python in workers of their own.
    """
    if not spec.pool:
        return
    if is_code(version.platform) and (version.platform != _PYTHON or not is_local):
        raise InvalidInput(
            f"{POOL} is {spec.pool!r}, but {version} is of platform {version.platform}, which needs replicas of its "
            "own; leave the pool out",
            field=POOL,
        )
    found = stored_policy(policy.document) if isinstance(policy, RolloutPolicy) else policy
    if not is_local and found is not None and found.strategy is Strategy.SHADOW:
        raise InvalidInput(
            f"policy {found.name} is a shadow, and a route of the Gateway API cannot name another version to a copy in "
            "a model pool; choose a canary or blue/green policy, or leave spec.predictor.pool out",
            field="spec.rollout.policy",
        )


def check_deletable(service: InferenceService) -> None:
    """Raise Conflict for a pool in which services still are."""
    inside = Revision.objects.filter(pool=str(service), stopped_at=None, service__deleting_at=None)
    names = list(inside.order_by("service_id").values_list("service__namespace", "service__name").distinct()[:4])
    if names:
        shown = ", ".join("/".join(each) for each in names[:3]) + (" and more" if len(names) > 3 else "")
        raise Conflict(
            f"model pool {service} serves {shown}; delete those first, or apply their files with another pool or none"
        )


def _check_cluster(cluster: Cluster, pool: InferenceService, named: str) -> None:
    if pool.cluster_id != cluster.pk:
        raise InvalidInput(
            f"{POOL} is {named!r}, which runs on cluster {pool.cluster.name}, and the service on {cluster.name}; name "
            "a pool there",
            field=POOL,
        )
