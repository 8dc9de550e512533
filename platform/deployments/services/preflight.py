"""Preflight checks by the serving runtime and the cluster, before any write and outside transactions."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from clusters.domain.cluster_file import parse_cluster
from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_for
from clusters.services.connection import access_of, is_away
from common.errors import FairleadError, InvalidInput, Unavailable
from deployments.domain.service_file import CONFIG, PATCHES, parse_service
from deployments.models import InferenceService
from deployments.services.gpu_assignment import gpus_look
from deployments.views.shapes import Plan
from integrations.clusters.base import ClusterDriver, Finding
from integrations.clusters.drivers import KubernetesCluster, passing_driver
from integrations.clusters.kubernetes.manifests.example import difference_of, example_of

_MOST_NAMESPACES = 5
"""A cluster's patches are tried in so many of the namespaces with services; differences between them are seldom more
than a policy.
"""


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
    cluster = cluster_for(namespace=namespace, name=name, asked=spec.cluster, now=now)
    is_new = not cluster.services.filter(namespace=namespace, name=name).exists()
    if is_new and not is_away(cluster, now):
        with suppress(Unavailable):  # it is created there once the cluster answers again
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


def plan_check(plan: Plan, driver: ClusterDriver) -> None:
    """Raise InvalidInput where the cluster could not do a part of the plan, such as a step of a rollout.

    An unreachable cluster is no reason to refuse: the service reports it when it comes to that.
    """
    try:
        for wish in plan.wishes:
            driver.check(wish)
    except Unavailable:
        return


def plan_patched(plan: Plan, driver: ClusterDriver) -> Plan:
    """Return the plan with the result of patches on the rendered manifests, after a dry run on the cluster.

    Raises:
        InvalidInput: a patch changes nothing, changes foreign fields, or is refused by the cluster; by name.
        Unavailable: there are patches, and the cluster cannot be reached.
    """
    wish = plan.wishes[0] if plan.wishes else None
    if wish is None or not any(revision.patches for revision in wish.revisions):
        return plan
    own = [patch for patch in wish.revisions[-1].patches if patch.name.startswith(PATCHES)]
    return replace(plan, patched=driver.preview(wish, own))


def cluster_try(*, document: object, name: str) -> Sequence[Finding]:
    """Return whether services could run on the cluster of an unsaved file; nothing is stored.

    Called with no transaction open. Raises InvalidInput where the file is wrong.
    """
    file = parse_cluster(document, name=name)
    row = Cluster.objects.filter(name=file.name).first()
    used = InferenceService.objects.filter(cluster=row).order_by("namespace").values_list("namespace", flat=True)
    try:
        place = KubernetesCluster(access_of(file.connection, "" if row is None else row.credentials), file.options)
        with passing_driver(place) as driver:
            return driver.findings(list(used.distinct()))
    except FairleadError as error:
        return [Finding("connection", False, error.message, "mend what the sentence says, and look again")]


def cluster_patches_try(*, document: object, name: str, namespaces: Sequence[str] = ()) -> tuple[str, str]:
    """Return the result of a cluster file's patches on an example, and why the cluster did not check it.

    The check is a dry run over the file's connection, in some of the namespaces where services run and in these;
    nothing is stored.

    Args:
        namespaces: further ones, such as one in which no service runs yet.

    Returns:
        A unified diff, empty without patches; a sentence, empty where the cluster checked it.

    Raises:
        InvalidInput: the file is wrong, or the cluster refuses the result of a patch.
    """
    file = parse_cluster(document, name=name)
    if not file.patches:
        return "", ""
    row = Cluster.objects.filter(name=file.name).first()
    services = InferenceService.objects.filter(cluster=row).order_by("namespace")
    used = services.values_list("namespace", flat=True).distinct()[:_MOST_NAMESPACES]
    asked = sorted({*used, *namespaces})
    told = difference_of(file.patches, file.options)
    if not asked:
        return told, f"no service runs on cluster {file.name} yet: name a namespace in which patches are to be tried"
    try:
        place = KubernetesCluster(access_of(file.connection, "" if row is None else row.credentials), file.options)
        with passing_driver(place) as driver:
            for namespace in asked:
                driver.preview(example_of(file.patches, file.options, namespace), ())
    except InvalidInput:
        raise
    except FairleadError as error:
        return told, error.message
    return told, ""
