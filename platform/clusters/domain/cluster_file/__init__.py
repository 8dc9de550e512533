"""The cluster file: how a Kubernetes cluster is reached and how services are run there, as a value. Pure.

Every field is in docs/reference/cluster-file.md, which a test compares with the parser.
"""

from clusters.domain.cluster_file.connection import STORED, Connection, Way
from clusters.domain.cluster_file.file import KIND, ClusterFile, parse_cluster

__all__ = ["KIND", "STORED", "ClusterFile", "Connection", "Way", "parse_cluster"]
