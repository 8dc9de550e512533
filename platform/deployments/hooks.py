"""Hooks: what rooms above register for sweeps of clusters."""

from collections.abc import Callable
from datetime import datetime

from clusters.models import Cluster
from common.hooks import Hook
from integrations.clusters.base import ClusterDriver

cluster_observed: Hook[[Cluster, ClusterDriver, Callable[[], datetime]], None] = Hook()
"""A cluster that answered the sweep, with its driver and the clock; called with no transaction open."""
