"""Prometheus of a cluster's services: that of the cluster's file, else that of the settings."""

import ssl
from collections.abc import Iterator

from django.conf import settings

from clusters.domain.cluster_file import ClusterFile, PrometheusServer
from clusters.models import Cluster
from clusters.services.connection import file_of
from common.encryption import seal, unseal
from common.errors import FairleadError, InvalidInput
from integrations.clusters.base import Finding
from integrations.metrics.prometheus import Prometheus
from integrations.trust import trust

PURPOSE = "tokens for Prometheus of clusters"


def prometheus_of(cluster: Cluster) -> Prometheus | None:
    """Return what answers queries about the cluster's services; None where none is configured.

    Raises:
        Unavailable: the token was encrypted under another `FAIRLEAD_SECRET_KEY`.
    """
    return prometheus_by(file_of(cluster), cluster.prometheus_token)


def prometheus_by(file: ClusterFile | None, sealed_token: str) -> Prometheus | None:
    """Return the Prometheus of a cluster by its file, None for this machine; raises what `prometheus_of` raises.

    Args:
        sealed_token: the stored one; may be empty.
    """
    if file is not None and file.prometheus is not None:
        server = file.prometheus
        token = _opened(sealed_token) if server.is_token_stored else server.token
        return Prometheus(server.url, token, server.authority, server.tenant, cluster=file.name)
    if not settings.PROMETHEUS_URL:
        return None
    return Prometheus(
        settings.PROMETHEUS_URL, settings.PROMETHEUS_TOKEN, settings.PROMETHEUS_CA, settings.PROMETHEUS_TENANT
    )


def findings(prometheus: Prometheus | None) -> Iterator[Finding]:
    """Yield whether it answers a query now; nothing without one."""
    if prometheus is None:
        return
    try:
        (answer,) = prometheus.ask(["vector(1)"])
    except FairleadError as error:
        where = "`prometheus` of the cluster file" if prometheus.cluster else "FAIRLEAD_PROMETHEUS_URL"
        remedy = f"let {where} name one that answers here; until then metrics of policies hold their steps"
        yield Finding("Prometheus", False, error.message, remedy)
        return
    if answer.value == 1:
        yield Finding("Prometheus", True, f"{prometheus.called} answers queries")
    else:
        found = answer.problem or "it answers the query vector(1) with another number than 1"
        yield Finding("Prometheus", False, f"{prometheus.called}: {found}", "check that it has Prometheus' HTTP API")


def sealed_token(file: ClusterFile, row: Cluster | None) -> str:
    """Return the token to store for a file, encrypted; empty without one.

    A stored token is kept for the address that it was given for: another one gets it only where it is given again.

    Args:
        row: the cluster before the file; None for a new one.

    Raises:
        InvalidInput: the authority is no certificate, or `stored` names no token that may be used.
        Unavailable: the stored token was encrypted under another `FAIRLEAD_SECRET_KEY`.
    """
    server = file.prometheus
    if server is None:
        return ""
    _check_authority(server)
    stored = "" if row is None else row.prometheus_token
    if not server.is_token_stored:
        if server.token and _is_same(stored, server.token):
            return stored
        return seal(server.token, purpose=PURPOSE) if server.token else ""
    if row is None or not stored:
        raise InvalidInput(
            f"prometheus.token is 'stored', but none is stored for cluster {file.name!r}; give it",
            field="prometheus.token",
        )
    known = str(((row.document or {}).get("prometheus") or {}).get("url", "")).rstrip("/")
    if known != server.url:
        raise InvalidInput(
            f"prometheus.token is 'stored', and was given for {known}; give the token for {server.url}",
            field="prometheus.token",
        )
    _opened(stored)
    return stored


def _check_authority(server: PrometheusServer) -> None:
    try:
        trust(server.authority)
    except (ssl.SSLError, ValueError) as error:
        field = "prometheus.certificateAuthority"
        raise InvalidInput(f"{field} is no PEM with certificates: {error}", field=field) from error


def _is_same(stored: str, token: str) -> bool:
    try:
        return _opened(stored) == token
    except FairleadError:
        return False


def _opened(stored: str) -> str:
    return unseal(stored, purpose=PURPOSE) if stored else ""
