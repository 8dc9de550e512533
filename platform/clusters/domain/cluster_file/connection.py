"""`connection` of a cluster file: how its API server is reached. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum

from clusters.domain.cluster_file.kubeconfig import parse_kubeconfig
from common.errors import InvalidInput
from common.files.document import Document
from integrations.clusters.kubernetes.access import Credentials

STORED = "stored"
"""Placeholder in a file for the stored kubeconfig, which is never shown again."""


class Way(StrEnum):
    """Ways of reaching the API server."""

    IN_CLUSTER = "inCluster"
    KUBECONFIG = "kubeconfig"
    STORED = "stored"
    PATH = "kubeconfigPath"


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection to the API server.

    Attributes:
        credentials: of a kubeconfig inside the file; None with the other ways.
        path: of a kubeconfig that the operator mounted; empty with the other ways.
        context: of the kubeconfig; empty takes its current one.
    """

    way: Way
    credentials: Credentials | None = field(default=None, repr=False)
    path: str = ""
    context: str = ""


def parse_connection(document: Document) -> Connection:
    """Return the file's connection to the API server."""
    in_cluster = document.flag("inCluster", default=False)
    kubeconfig = document.raw("kubeconfig", None)
    path, context = document.text("kubeconfigPath", default=""), document.text("context", default="")
    document.refuse_unknown()
    ways = [in_cluster, kubeconfig is not None, bool(path)]
    if ways.count(True) != 1 and document.is_sound():
        what = f"{document.prefix} has to say one of inCluster: true, kubeconfig and kubeconfigPath"
        document.report(InvalidInput(what, field=document.prefix))
    if context and (in_cluster or kubeconfig == STORED):
        document.fault(
            "context",
            f"is {context[:60]!r}, but there is no kubeconfig to choose it from; leave it out, or give the kubeconfig "
            "again",
        )
    if in_cluster:
        return Connection(Way.IN_CLUSTER)
    if path:
        return Connection(Way.PATH, path=path, context=context)
    if kubeconfig is None or kubeconfig == STORED:
        return Connection(Way.STORED)
    credentials = document.attempt(None, parse_kubeconfig, document, "kubeconfig", context)
    return Connection(Way.KUBECONFIG, credentials, context=context)
