"""Default model pool: a service that may scale to zero is in it, where it can be and its file names no other.

Its file is kept as if it named the pool. What cannot be in a pool waits in the gateway for a replica instead.
"""

from copy import deepcopy
from typing import Any, cast

from django.conf import settings

from common.errors import InvalidInput
from deployments.domain.service_file import ServiceSpec, parse_service
from deployments.domain.service_file.clusters import LOCAL
from deployments.models import InferenceService, RolloutPolicy
from deployments.services.revisions.model_pools import check_pooled, pool_named
from registry.models import ModelVersion


def in_default_pool(
    document: object, spec: ServiceSpec, version: ModelVersion | None, policy: RolloutPolicy | None
) -> tuple[object, ServiceSpec]:
    """Return a service file and its content, in the default pool where that takes the service.

    Args:
        version: None where it is not registered yet; such a service is in no pool that it does not name.
    """
    named = settings.DEFAULT_MODEL_POOL
    if not named or spec.pool or version is None or not spec.scaling.may_sleep:
        return document, spec
    changed = deepcopy(cast(dict[str, Any], document))
    changed["spec"]["predictor"] |= {"pool": named, "maxReplicas": spec.scaling.max_replicas}
    try:
        pooled = parse_service(changed, namespace=spec.namespace, name=spec.name)
        pool = pool_named(pooled)
        is_local = pool is not None and pool.cluster.kind == LOCAL
        check_pooled(pooled, version, policy, is_local=is_local)
    except InvalidInput:
        return document, spec
    service = (
        InferenceService.objects.filter(namespace=spec.namespace, name=spec.name).select_related("cluster").first()
    )
    cluster = service.cluster.name if service is not None else spec.cluster or settings.DEFAULT_CLUSTER
    if pool is None or pool.cluster.name != cluster or not (is_local or _may_begin(service, pooled)):
        return document, spec
    return changed, pooled


def _may_begin(service: InferenceService | None, pooled: ServiceSpec) -> bool:
    """Return whether a service is new, or in this pool already: on Kubernetes it moves into none."""
    if service is None:
        return True
    return parse_service(service.document, namespace=service.namespace, name=service.name).pool == pooled.pool
