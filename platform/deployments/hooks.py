"""Hooks: what rooms above register for sweeps of clusters and for the page of a service."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from clusters.models import Cluster
from common.hooks import Hook
from integrations.clusters.base import ClusterDriver

cluster_observed: Hook[[Cluster, ClusterDriver, Callable[[], datetime]], None] = Hook()
"""A cluster that answered the sweep, with its driver and the clock; called with no transaction open."""
call_token: Hook[[str, datetime], str] = Hook()
"""A service, `<namespace>/<name>`, and the time; returns a token by which the control plane may call it now."""
service_page: Hook[[int], Mapping[str, Any]] = Hook()
"""A service's id; returns the context of further sections of its page."""
