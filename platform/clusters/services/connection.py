"""Cluster connections from stored rows: the only place where stored credentials are decrypted."""

import json
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from clusters.domain.cluster_file import ClusterFile, Connection, Way, parse_cluster
from clusters.domain.cluster_file.exec_plugin import check_allowed
from clusters.domain.cluster_file.mounted_kubeconfig import MountedUser, parse_mounted, refuse_unlisted
from clusters.models import Cluster
from common.encryption import seal, unseal
from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import ClusterDriver
from integrations.clusters.drivers import KubernetesCluster, LocalCluster, Place, driver_for
from integrations.clusters.kubernetes.access import Access, AsPod, ClusterInfo, Credentials, ExecPlugin, KubeconfigFile
from integrations.clusters.kubernetes.api.exec_plugin import token_of
from integrations.clusters.unavailable_driver import away

LOCAL = "local"
"""Kind and name of the cluster that is this machine."""
PURPOSE = "kubeconfigs of clusters"
_known: dict[str, tuple[Any, ClusterFile]] = {}
"""The files that were parsed last, with their documents, by the cluster's name."""


def driver_of(cluster: Cluster) -> ClusterDriver:
    """Return the cluster's driver; cached in the process until the row, or the kubeconfig it names, changes.

    Raises:
        InvalidInput: the row, or the kubeconfig it names, does not say how to reach the cluster.
        Unavailable: the credentials were encrypted under another `FAIRLEAD_SECRET_KEY`, or the file cannot be read.
    """
    return driver_for(cluster.name, place_of(cluster))


def driver_now(cluster: Cluster, now: datetime) -> ClusterDriver:
    """Return the cluster's driver, or one that fails at once where the cluster was unreachable a moment ago.

    Raises what `driver_of` raises.
    """
    return away(cluster.problem) if is_away(cluster, now) else driver_of(cluster)


def is_away(cluster: Cluster, now: datetime) -> bool:
    """Return whether the cluster was unreachable a moment ago, so that no caller should wait for it now."""
    return cluster.look_at is not None and now < cluster.look_at


def file_of(cluster: Cluster) -> ClusterFile | None:
    """Return the parsed cluster file; None for this machine, and for a cluster without a file."""
    return _parsed(cluster) if cluster.document else None


def allows_python(cluster: Cluster) -> bool:
    """Return whether the cluster runs models whose files are code."""
    if cluster.kind == LOCAL:
        return bool(settings.ALLOW_PYTHON_MODELS)
    file = file_of(cluster)
    return file is not None and file.options.allow_python_models


def place_of(cluster: Cluster) -> Place:
    """Return the cluster's place; raises what `driver_of` raises."""
    if cluster.kind == LOCAL:
        return LocalCluster(settings.CLUSTER_FOLDER, settings.ALLOW_PYTHON_MODELS)
    file = _parsed(cluster)
    options = replace(
        file.options,
        payloads_folder=str(settings.PAYLOADS_FOLDER / cluster.name),
        egress_allowed=settings.EGRESS_ALLOWED_NETWORKS,
        allowed_registries=settings.ALLOWED_REGISTRIES,
        max_model_bytes=settings.MAX_ARTIFACT_BYTES,
    )
    return KubernetesCluster(access_of(file.connection, cluster.credentials), options)


def can_record(cluster: Cluster) -> bool:
    """Return whether replicas on the cluster can upload what their taps record."""
    return cluster.kind == LOCAL or bool(_parsed(cluster).options.control_plane_url)


def access_to(cluster: Cluster) -> Access:
    """Return how a Kubernetes cluster is reached; raises what `driver_of` raises."""
    return access_of(_parsed(cluster).connection, cluster.credentials)


def access_of(connection: Connection, sealed: str) -> Access:
    """Return how a cluster is reached; raises what `driver_of` raises.

    Args:
        sealed: the stored credentials; may be empty.
    """
    if connection.credentials is not None:
        return _listed(connection.credentials)
    if connection.way is Way.STORED:
        return _listed(opened(sealed))
    if connection.way is Way.PATH:
        return _mounted(connection)
    return AsPod()


def exec_token_times(cluster: Cluster) -> dict[str, str] | None:
    """Return when the token of the cluster's exec plugin was made and ends; None without one that says its end.

    Runs the plugin where its last token is about to end; called with no transaction open.

    Raises:
        Unavailable: the plugin gives no token. Also what `driver_of` raises.
    """
    access = None if cluster.kind == LOCAL else access_to(cluster)
    if access is None or isinstance(access, AsPod) or access.exec_plugin is None:
        return None
    token = token_of(access.exec_plugin)
    if token.expires_at is None:
        return None
    return {"issued_at": token.issued_at.isoformat(), "expires_at": token.expires_at.isoformat()}


def sealed(credentials: Credentials) -> str:
    """Return credentials encrypted, as the database keeps them."""
    known = asdict(credentials)
    if credentials.exec_plugin is None:  # so that releases before exec plugins can read it
        del known["exec_plugin"]
    return seal(json.dumps(known), purpose=PURPOSE)


def opened(stored: str) -> Credentials:
    """Return decrypted credentials; raises Unavailable under another `FAIRLEAD_SECRET_KEY`."""
    known = json.loads(unseal(stored, purpose=PURPOSE))
    if plugin := known.get("exec_plugin"):
        cluster = plugin["cluster"]
        known["exec_plugin"] = ExecPlugin(
            plugin["command"],
            tuple(plugin["args"]),
            tuple((name, value) for name, value in plugin["env"]),
            plugin["api_version"],
            None if cluster is None else ClusterInfo(**cluster),
        )
    return Credentials(**known)


def mounted_user(path: Path, context: str, content: bytes) -> MountedUser:
    """Return the credentials that a mounted kubeconfig has; raises InvalidInput, also for unlisted programs."""
    found = _mounted_user(path, context, content)
    if settings.EXEC_PLUGINS is not None:
        refuse_unlisted(found, path=path)
        if found.exec_plugin is not None:
            check_allowed(found.exec_plugin, settings.EXEC_PLUGINS, field="connection.kubeconfigPath")
    return found


@lru_cache(maxsize=256)
def _mounted_user(path: Path, context: str, content: bytes) -> MountedUser:
    return parse_mounted(content, path=path, context=context)


def _listed(credentials: Credentials) -> Credentials:
    """Return credentials whose program, if they have one, the operator lists; raises InvalidInput."""
    if credentials.exec_plugin is not None:
        check_allowed(credentials.exec_plugin, settings.EXEC_PLUGINS or (), field="connection.kubeconfig")
    return credentials


def _parsed(cluster: Cluster) -> ClusterFile:
    """Return the parsed file of a cluster, which is parsed again only where it says something else.

    Every cluster's file is needed every few seconds.
    """
    known = _known.get(cluster.name)
    if known is None or known[0] != cluster.document:
        document = deepcopy(cluster.document)  # the row's own may be changed by its reader
        known = _known[cluster.name] = document, parse_cluster(document, name=cluster.name)
    return known[1]


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
    return _of_file(KubeconfigFile(path, connection.context, content))


def _of_file(file: KubeconfigFile) -> KubeconfigFile:
    """Return the access with what of it renews itself; raises InvalidInput where the operator's list refuses it."""
    is_limited = settings.EXEC_PLUGINS is not None
    try:
        user = mounted_user(file.path, file.context, file.content)
    except InvalidInput:
        if is_limited:
            raise
        return file  # the client library says what is wrong with it
    return replace(
        file,
        exec_plugin=user.exec_plugin if is_limited else None,
        token_file=user.token_file,
        versions=tuple(_version(path) for _, path in sorted(user.files.items())),
        runs_any=not is_limited,
    )


def _version(path: str) -> tuple[str, int, int]:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return path, 0, 0
    return path, found.st_mtime_ns, found.st_size
