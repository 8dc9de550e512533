"""Reaches a cluster as its row says: the only place where stored credentials are opened."""

import json
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from django.conf import settings

from clusters.domain.cluster_file import ClusterFile, Connection, Way, parse_cluster
from clusters.models import Cluster
from common.encryption import seal, unseal
from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import ClusterDriver
from integrations.clusters.drivers import KubernetesCluster, LocalCluster, Place, driver_for
from integrations.clusters.kubernetes.api.access import Access, AsPod, Credentials, KubeconfigFile
from integrations.clusters.unavailable_driver import away

LOCAL = "local"
"""The kind, and the name, of the cluster that is this machine."""
PURPOSE = "kubeconfigs of clusters"


def driver_of(cluster: Cluster) -> ClusterDriver:
    """Return the cluster's driver; within a process it is kept until the row, or the kubeconfig it names, changes.

    Raises:
        InvalidInput: the row, or the kubeconfig it names, does not tell how to reach the cluster.
        Unavailable: what was stored was encrypted under another `FAIRLEAD_SECRET_KEY`, or the file cannot be read.
    """
    return driver_for(cluster.name, place_of(cluster))


def driver_now(cluster: Cluster, now: datetime) -> ClusterDriver:
    """Return the cluster's driver, or one that says at once that it is away where it was so a moment ago.

    Raises what `driver_of` raises.
    """
    return away(cluster.problem) if is_away(cluster, now) else driver_of(cluster)


def is_away(cluster: Cluster, now: datetime) -> bool:
    """Return whether the cluster did not answer a moment ago, so that nobody should wait for it now."""
    return cluster.look_at is not None and now < cluster.look_at


def file_of(cluster: Cluster) -> ClusterFile | None:
    """Return what the cluster's file says; None of this machine, and of one that has no file yet."""
    return parse_cluster(cluster.document, name=cluster.name) if cluster.document else None


def allows_python(cluster: Cluster) -> bool:
    """Return whether the cluster runs models whose files are code."""
    if cluster.kind == LOCAL:
        return bool(settings.ALLOW_PYTHON_MODELS)
    file = file_of(cluster)
    return file is not None and file.options.allow_python_models


def place_of(cluster: Cluster) -> Place:
    """Return where the cluster is; raises what `driver_of` raises."""
    if cluster.kind == LOCAL:
        return LocalCluster(settings.CLUSTER_FOLDER, settings.ALLOW_PYTHON_MODELS)
    file = parse_cluster(cluster.document, name=cluster.name)
    options = replace(
        file.options,
        payloads_folder=str(settings.PAYLOADS_FOLDER / cluster.name),
        egress_allowed=settings.EGRESS_ALLOWED_NETWORKS,
    )
    return KubernetesCluster(access_of(file.connection, cluster.credentials), options)


def can_record(cluster: Cluster) -> bool:
    """Return whether replicas on the cluster can bring what their taps record."""
    return cluster.kind == LOCAL or bool(parse_cluster(cluster.document, name=cluster.name).options.control_plane_url)


def access_to(cluster: Cluster) -> Access:
    """Return how a Kubernetes cluster is reached; raises what `driver_of` raises."""
    return access_of(parse_cluster(cluster.document, name=cluster.name).connection, cluster.credentials)


def access_of(connection: Connection, sealed: str) -> Access:
    """Return how a cluster is reached; raises what `driver_of` raises.

    Args:
        sealed: the credentials that are stored; empty where there are none.
    """
    if connection.credentials is not None:
        return connection.credentials
    if connection.way is Way.STORED:
        return opened(sealed)
    if connection.way is Way.PATH:
        return _mounted(connection)
    return AsPod()


def sealed(credentials: Credentials) -> str:
    """Return credentials as the database keeps them."""
    return seal(json.dumps(asdict(credentials)), purpose=PURPOSE)


def opened(stored: str) -> Credentials:
    """Return credentials that were sealed; raises Unavailable under another `FAIRLEAD_SECRET_KEY`."""
    return Credentials(**json.loads(unseal(stored, purpose=PURPOSE)))


def _mounted(connection: Connection) -> KubeconfigFile:
    field, folder = "connection.kubeconfigPath", settings.KUBECONFIG_FOLDER
    if folder is None:
        raise InvalidInput(
            f"{field} is {connection.path!r}, but no folder is allowed; set FAIRLEAD_KUBECONFIG_FOLDER for web and "
            "worker to the folder where kubeconfigs are mounted",
            field=field,
        )
    path = Path(connection.path).resolve()
    if not path.is_relative_to(folder):
        raise InvalidInput(
            f"{field} is {connection.path!r}; expected a file below {folder} (FAIRLEAD_KUBECONFIG_FOLDER)", field=field
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Unavailable(
            f"{field} is {connection.path!r}, which cannot be read here: {error.strerror}; mount it into web and worker"
        ) from error
    return KubeconfigFile(path, connection.context, content)
