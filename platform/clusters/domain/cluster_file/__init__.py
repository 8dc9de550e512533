"""Cluster file: how a Kubernetes cluster is reached and how services run there, as a value. Pure.

docs/reference/cluster-file.md lists every field; a test compares it with the parser.
"""

from clusters.domain.cluster_file.connection import STORED, Connection, Way
from clusters.domain.cluster_file.file import KIND, ClusterFile, parse_cluster

__all__ = ["KIND", "STORED", "ClusterFile", "Connection", "Way", "parse_cluster"]
