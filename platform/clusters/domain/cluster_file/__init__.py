"""Cluster file: how a Kubernetes cluster is reached and how services run there, as a value. Pure.

docs/reference/cluster-file.md lists every field; a test compares it with the parser.
"""

from clusters.domain.cluster_file.connection import STORED, Connection, Way
from clusters.domain.cluster_file.file import KIND, ClusterFile, parse_cluster, without_secrets
from clusters.domain.cluster_file.prometheus import PrometheusServer

__all__ = [
    "KIND",
    "STORED",
    "ClusterFile",
    "Connection",
    "PrometheusServer",
    "Way",
    "parse_cluster",
    "without_secrets",
]
