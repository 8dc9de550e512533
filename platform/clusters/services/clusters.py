"""Changes of clusters: applied cluster files, deletion."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, cast

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from clusters import hooks
from clusters.domain.addresses import with_kept_addresses
from clusters.domain.cluster_file import KIND, STORED, ClusterFile, Way, parse_cluster, without_secrets
from clusters.domain.cluster_file.gateways import refuse_sudden_moves
from clusters.models import Cluster
from clusters.services import prometheus
from clusters.services.connection import LOCAL, access_of, driver_of, opened, sealed
from clusters.services.credential_expiry import expiry_findings
from common.errors import Conflict, FairleadError, InvalidInput, NotFound, Unavailable
from integrations.clusters.base import Finding
from integrations.clusters.kubernetes.access import Credentials
from integrations.clusters.kubernetes.api.tls import tls_of
from placement.repartition.machine import Phase

logger = logging.getLogger(__name__)
_SHOWN = 5
_OF_FILE = ("document", "gateway_url", "changed_at", "look_at", "credentials", "prometheus_token")


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """A cluster as its file wants it.

    Attributes:
        row: with the file's columns, not saved.
        before: its file before; None for a new one.
        read_at: when that was applied.
    """

    row: Cluster
    before: dict[str, Any] | None
    read_at: datetime | None
    changed: bool


@transaction.atomic
def cluster_apply(*, document: object, name: str | None, actor: str, now: datetime) -> tuple[Cluster, bool]:
    """Create or change the cluster that a cluster file describes; returns it and whether it is new. Idempotent.

    A kubeconfig is stored encrypted and never shown again; a file that says `kubeconfig: stored` keeps it. The
    reconciler's next turn updates what runs on the cluster.

    Raises:
        InvalidInput: the file is wrong, or the kubeconfig that it names cannot be used.
        Unavailable: the kubeconfig that it names cannot be read.
    """
    change = _followed(document, name, now, Cluster.objects.select_for_update())
    if change.changed:
        _write(change, actor=actor, now=now)
    return change.row, change.before is None


def cluster_planned(*, document: object, name: str | None, now: datetime) -> ClusterChange:
    """Return what `cluster_apply` would do; writes nothing, and raises what that raises."""
    return _followed(document, name, now, Cluster.objects.all())


def cluster_carry_out(change: ClusterChange, *, actor: str, now: datetime) -> bool:
    """Do what was planned; False where the cluster was changed since, and then nothing is written."""
    name = change.row.name
    try:
        with transaction.atomic():
            found = Cluster.objects.select_for_update().filter(name=name).values_list("changed_at", "document").first()
            if (found or (None, None)) != (change.read_at, change.before):
                return False
            if change.changed:
                _write(change, actor=actor, now=now)
    except IntegrityError:
        if change.before is None and Cluster.objects.filter(name=name).exists():
            return False
        raise
    return True


def _write(change: ClusterChange, *, actor: str, now: datetime) -> None:
    row, before = change.row, change.before
    row.save(update_fields=None if before is None else _OF_FILE)
    hooks.cluster_changed(row)
    transaction.on_commit(_want_watches)
    audit_record(
        actor=actor,
        action="cluster.apply",
        target=f"clusters/{row.name}",
        now=now,
        before=None if before is None else {"document": before},
        after={"document": row.document},
    )


def _followed(document: object, name: str | None, now: datetime, rows: QuerySet[Cluster]) -> ClusterChange:
    file = parse_cluster(document, name=name)
    if file.name == LOCAL:
        raise InvalidInput("name is 'local', which is this machine; choose another name", field="name")
    row = rows.filter(name=file.name).first()
    document = with_kept_addresses(cast(Mapping[str, Any], document), None if row is None else row.document)
    file = parse_cluster(document, name=file.name)
    credentials = _credentials(file, row)
    if isinstance(credentials, Credentials):
        tls_of(credentials)
    token = prometheus.sealed_token(file, row)
    text, before, read_at = {**without_secrets(document), "name": file.name}, None, None
    if row is None:
        row = Cluster(name=file.name, kind=KIND, created_at=now)
    else:
        before, read_at = row.document, row.changed_at
        _refuse_sudden_moves(row, file)
        _refuse_without_waker(row, file)
        if before == text and _stored(row) == credentials and row.prometheus_token == token:
            return ClusterChange(row, before, read_at, changed=False)
    row.document, row.gateway_url, row.changed_at = text, file.gateway_url, now
    row.look_at = None  # the cause of its failure may be fixed: connect at once
    row.credentials = "" if credentials is None else sealed(credentials)
    row.prometheus_token = token
    return ClusterChange(row, before, read_at, changed=True)


def cluster_check(*, cluster: Cluster, namespaces: Sequence[str], now: datetime) -> Sequence[Finding]:
    """Return whether services can run on the cluster, in their namespaces and in these. Changes nothing.

    Called with no transaction open.
    """
    used = cluster.services.order_by("namespace").values_list("namespace", flat=True).distinct()
    try:
        of_services = chain.from_iterable(hooks.findings(cluster))
        of_metrics = prometheus.findings(prometheus.prometheus_of(cluster))
        return [
            *driver_of(cluster).findings(sorted({*used, *namespaces})),
            *of_services,
            *of_metrics,
            *expiry_findings(cluster, now),
        ]
    except FairleadError as error:
        return [Finding("cluster file", False, error.message, "apply the cluster file with what the sentence says")]


@transaction.atomic
def cluster_delete(*, name: str, actor: str, now: datetime) -> None:
    """Delete a cluster; raises NotFound, and Conflict while services are on it or it is the default one."""
    row = Cluster.objects.select_for_update().filter(name=name).first()
    if row is None:
        raise NotFound(f"there is no cluster {name!r}")
    if name == settings.DEFAULT_CLUSTER:
        raise Conflict(f"cluster {name!r} is the default one; let FAIRLEAD_DEFAULT_CLUSTER name another first")
    users = [str(service) for service in row.services.order_by("namespace", "name")]
    if users:
        more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
        raise Conflict(f"cluster {name!r} runs {', '.join(users[:_SHOWN])}{more}; delete them first")
    busy = row.repartitions.filter(settled_at=None).exclude(phase=Phase.PROPOSED).first()
    if busy is not None:
        raise Conflict(
            f"node {busy.node} of cluster {name!r} is being repartitioned ({busy.phase}); abort repartition {busy.pk}, "
            "or wait for its end"
        )
    before = {"document": row.document}
    row.delete()
    audit_record(actor=actor, action="cluster.delete", target=f"clusters/{name}", now=now, before=before)


def _want_watches() -> None:
    """Have `fairlead up` start the watcher of clusters; elsewhere the operator runs it, and the folder is missing."""
    folder = settings.HOME / "run"
    if not folder.is_dir():
        return
    try:
        (folder / "watches").touch()
    except OSError as error:
        logger.warning("clusters are watched from the next start of `fairlead up` on: %s", error)


def _credentials(file: ClusterFile, row: Cluster | None) -> Credentials | None:
    """Return the credentials to store; None where the cluster is reached in another way, which is tested here."""
    if file.connection.way is Way.STORED:
        if row is None or not row.credentials:
            raise InvalidInput(
                f"connection.kubeconfig is {STORED!r}, but none is stored for cluster {file.name!r}; give it",
                field="connection.kubeconfig",
            )
        return opened(row.credentials)
    access_of(file.connection, "")
    return file.connection.credentials


def _stored(row: Cluster) -> Credentials | None:
    """Return the stored credentials; None also where they can no longer be decrypted, so that they can be replaced."""
    try:
        return opened(row.credentials) if row.credentials else None
    except Unavailable:
        return None


def _refuse_sudden_moves(row: Cluster, file: ClusterFile) -> None:
    """Raise InvalidInput where the file takes away the Gateway that clients of services use."""
    if not row.document or not (file.options.gateways or "gateways" in row.document):
        return
    before = parse_cluster(row.document, name=row.name).options
    namespaces = row.services.filter(deleting_at=None).values_list("namespace", flat=True).distinct()
    refuse_sudden_moves(before, file.options, set(namespaces))


def _refuse_without_waker(row: Cluster, file: ClusterFile) -> None:
    """Raise InvalidInput where services may have no replicas, and nothing would start the first one."""
    if file.options.waker is not None:
        return
    sleepers = row.services.filter(
        deleting_at=None,
        document__spec__predictor__minReplicas=0,
        document__spec__predictor__pool__isnull=True,  # a pool answers for the others
    )
    found = sleepers.order_by("namespace", "name").values_list("namespace", "name").first()
    if found is not None:
        raise InvalidInput(
            f"waker is left out, but nothing else wakes services with minReplicas: 0, such as {'/'.join(found)}; keep "
            "waker, or give them minReplicas: 1 before",
            field="waker",
        )
