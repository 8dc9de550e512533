"""Hooks: what the room of services registers for clusters, which are below it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet

from clusters.models import Cluster
from common.hooks import Hook
from integrations.clusters.base import Finding

cluster_changed: Hook[[Cluster], None] = Hook()
"""A cluster whose file changed, in that transaction: what runs there may be rendered differently now."""
services_touched: Hook[[int, Iterable[tuple[str, str]]], int] = Hook()
"""A cluster's id, and namespace and name of services whose objects changed there; has them reconciled soon, and
returns how many of them there are.
"""
findings: Hook[[Cluster], Iterable[Finding]] = Hook()
"""A cluster; returns what is wrong with what runs on it."""
resources_used: Hook[[Cluster], Iterable[str]] = Hook()
"""A cluster; returns the GPUs and slices that its replicas have now."""
services_public: Hook[[Cluster, Q], QuerySet[Any]] = Hook()
"""A cluster and a condition; returns its services that meet it and that everybody may call, by name."""
services_worst_first: Hook[[Cluster, Q], QuerySet[Any]] = Hook()
"""A cluster and a condition; returns its services that meet it, by name, unhealthy ones first."""
