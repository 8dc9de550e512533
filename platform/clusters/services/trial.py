"""Trial of a cluster file before it is applied: its connection, its findings and its patches. Stores nothing."""

from collections.abc import Sequence

from clusters.domain.cluster_file import parse_cluster
from clusters.models import Cluster
from clusters.services.connection import access_of
from clusters.services.prometheus import findings, prometheus_by, sealed_token
from common.errors import FairleadError, InvalidInput
from integrations.clusters.base import Finding
from integrations.clusters.drivers import KubernetesCluster, passing_driver
from integrations.clusters.kubernetes.manifests.example import difference_of, example_of

_MOST_NAMESPACES = 5
"""A cluster's patches are tried in so many of the namespaces with services; differences between them are seldom more
than a policy.
"""


def cluster_try(*, document: object, name: str) -> Sequence[Finding]:
    """Return whether services could run on the cluster of an unsaved file; nothing is stored.

    Called with no transaction open. Raises InvalidInput where the file is wrong.
    """
    file = parse_cluster(document, name=name)
    row = Cluster.objects.filter(name=file.name).first()
    try:
        place = KubernetesCluster(access_of(file.connection, "" if row is None else row.credentials), file.options)
        prometheus = prometheus_by(file, sealed_token(file, row))
        with passing_driver(place) as driver:
            return [*driver.findings(_namespaces(row)), *findings(prometheus)]
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
    asked = sorted({*_namespaces(row)[:_MOST_NAMESPACES], *namespaces})
    difference = difference_of(file.patches, file.options)
    if not asked:
        untried = f"no service runs on cluster {file.name} yet: name a namespace in which patches are to be tried"
        return difference, untried
    try:
        place = KubernetesCluster(access_of(file.connection, "" if row is None else row.credentials), file.options)
        with passing_driver(place) as driver:
            for namespace in asked:
                driver.preview(example_of(file.patches, file.options, namespace), ())
    except InvalidInput:
        raise
    except FairleadError as error:
        return difference, error.message
    return difference, ""


def _namespaces(row: Cluster | None) -> list[str]:
    """Return the namespaces of the cluster's services, in order."""
    if row is None:
        return []
    return list(row.services.order_by("namespace").values_list("namespace", flat=True).distinct())
