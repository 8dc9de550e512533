"""What only the serving runtime, or the cluster, can judge. Asked before anything is written, outside transactions."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from common.errors import InvalidInput, Unavailable
from deployments.connecting import is_away
from deployments.models import Cluster
from deployments.services.choosing import cluster_for
from deployments.shapes import Plan
from deployments.spec import CONFIG, PATCHES, parse_service
from integrations.clusters.base import ClusterDriver


def service_check(
    *, document: object, namespace: str, name: str, driver_of: Callable[[Cluster], ClusterDriver], now: datetime
) -> Cluster:
    """Return the cluster that the service of a file runs on.

    Raises:
        InvalidInput: the file is wrong, or the runtime would refuse the fields under `config`.
        NotFound: the cluster that the file names is not there.
        Conflict: a new service's namespace is not there, or the driver may not do its work in it.
        Unavailable: the runtime could not be asked.
    """
    spec = parse_service(document, namespace=namespace, name=name)
    cluster = cluster_for(namespace=namespace, name=name, asked=spec.cluster, now=now)
    is_new = not cluster.services.filter(namespace=namespace, name=name).exists()
    if is_new and not is_away(cluster, now):
        with suppress(Unavailable):  # it is brought there once the cluster answers again
            driver_of(cluster).check_namespace(namespace)
    if not spec.model_config:
        return cluster
    try:
        driver_of(cluster).check_config(spec.model_config)
    except InvalidInput as error:
        field = f"{CONFIG}.{error.field}" if error.field else CONFIG
        raise InvalidInput(f"{field}: {error.message}", field=field) from error
    return cluster


def plan_check(plan: Plan, driver: ClusterDriver) -> None:
    """Raise InvalidInput where the cluster could not do a part of what is planned, such as a step of a rollout.

    A cluster that cannot be asked now is no reason to refuse: it says so on the service when it comes to that.
    """
    try:
        for wish in plan.wishes:
            driver.check(wish)
    except Unavailable:
        return


def plan_patched(plan: Plan, driver: ClusterDriver) -> Plan:
    """Return the plan with what patches make of what is rendered, after the cluster was asked whether it takes that.

    Raises:
        InvalidInput: a patch changes nothing, touches what is not its own, or the cluster does not take it; by name.
        Unavailable: there are patches, and the cluster cannot be asked.
    """
    wish = plan.wishes[0] if plan.wishes else None
    if wish is None or not any(revision.patches for revision in wish.revisions):
        return plan
    own = [patch for patch in wish.revisions[-1].patches if patch.name.startswith(PATCHES)]
    return replace(plan, patched=driver.preview(wish, own))
