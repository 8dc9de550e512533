"""Preflight checks by the serving runtime and the cluster, before any write and outside transactions."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from django.conf import settings

from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_for
from clusters.services.connection import is_away
from common.errors import InvalidInput, NotPermitted, Unavailable
from deployments.domain.service_file import CONFIG, PATCHES, PUBLIC, parse_service
from deployments.services.revisions.gpu_assignment import gpus_look
from deployments.services.revisions.model_pools import cluster_asked, pool_named
from deployments.views.shapes import Plan
from integrations.clusters.base import ClusterDriver


def service_check(
    *, document: object, namespace: str, name: str, driver_of: Callable[[Cluster], ClusterDriver], now: datetime
) -> Cluster:
    """Return the cluster that the service of a file runs on.

    Raises:
        InvalidInput: the file is wrong, or the runtime would refuse the fields under `config`.
        NotFound: the cluster of the file does not exist.
        Conflict: a new service's namespace does not exist, or the driver lacks permissions in it.
        Unavailable: the runtime could not be reached.
    """
    spec = parse_service(document, namespace=namespace, name=name)
    asked = cluster_asked(spec, None if spec.cluster else pool_named(spec))
    cluster = cluster_for(namespace=namespace, name=name, asked=asked, now=now)
    is_new = not cluster.services.filter(namespace=namespace, name=name).exists()
    if is_new and not is_away(cluster, now):
        with suppress(Unavailable, NotPermitted):  # it is created there once the cluster answers again
            driver_of(cluster).check_namespace(namespace)
    if spec.resources.accelerator and not is_away(cluster, now):
        gpus_look(cluster, driver_of, now)
    if not spec.model_config:
        return cluster
    try:
        driver_of(cluster).check_config(spec.model_config)
    except InvalidInput as error:
        field = f"{CONFIG}.{error.field}" if error.field else CONFIG
        raise InvalidInput(f"{field}: {error.message}", field=field) from error
    return cluster


def access_by_default(
    *,
    document: object,
    namespace: str,
    name: str,
    cluster: Cluster,
    driver_of: Callable[[Cluster], ClusterDriver],
    now: datetime,
) -> str | None:
    """Return who may call the service of a file; None where the file says so, or the service is there already.

    That is everybody where the cluster's gateway cannot check callers. One that cannot be reached now, or about which
    the driver may not ask, is taken for one that can: `plan_check` then says what is missing.
    """
    spec = parse_service(document, namespace=namespace, name=name)
    if spec.access is not None or cluster.services.filter(namespace=namespace, name=name).exists():
        return None
    default = str(settings.DEFAULT_ACCESS)
    if default != PUBLIC and not is_away(cluster, now):
        with suppress(Unavailable, NotPermitted):
            return default if driver_of(cluster).checks_callers(namespace) else PUBLIC
    return default


def plan_check(plan: Plan, driver: ClusterDriver) -> None:
    """Raise InvalidInput where the cluster could not do a part of the plan, such as a step of a rollout.

    An unreachable cluster is no reason to refuse: the service reports it when it comes to that.
    """
    try:
        for desired in plan.desired_states:
            driver.check(desired)
    except Unavailable:
        return


def plan_patched(plan: Plan, driver: ClusterDriver) -> Plan:
    """Return the plan with the result of patches on the rendered manifests, after a dry run on the cluster.

    Raises:
        InvalidInput: a patch changes nothing, changes foreign fields, or is refused by the cluster; by name.
        Unavailable: there are patches, and the cluster cannot be reached.
    """
    desired = plan.desired_states[0] if plan.desired_states else None
    if desired is None or not any(revision.patches for revision in desired.revisions):
        return plan
    own = [patch for patch in desired.revisions[-1].patches if patch.name.startswith(PATCHES)]
    return replace(plan, patched=driver.preview(desired, own))
