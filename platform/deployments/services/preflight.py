"""What only the serving runtime, or the cluster, can judge. Asked before anything is written, outside transactions."""

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
"""In so many of the namespaces with services a cluster's patches are tried; what differs between them is seldom more
than a policy."""


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


def cluster_try(*, document: object, name: str) -> Sequence[Finding]:
    """Return whether services could run on a cluster as a file says that nobody has saved; nothing is kept.

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
    """Return what a cluster file's patches make of an example, and why the cluster was not asked whether it takes that.

    It is asked as the file says, in some of the namespaces where services run and in these; nothing is kept.

    Args:
        namespaces: more of them, such as one in which no service runs yet.

    Returns:
        A unified diff, empty without patches; a sentence, empty where the cluster was asked.

    Raises:
        InvalidInput: the file is wrong, or the cluster does not take what a patch makes.
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
