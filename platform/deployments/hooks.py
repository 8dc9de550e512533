"""Hooks: what rooms above register for sweeps of clusters, for the page of a service and for the labels of a gate."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from clusters.models import Cluster
from common.hooks import Hook
from deployments.domain.analysis.evidence.labelled import Answered, Asked, Habits
from integrations.clusters.base import ClusterDriver

cluster_observed: Hook[[Cluster, ClusterDriver, Callable[[], datetime]], None] = Hook()
"""A cluster that answered the sweep, with its driver and the clock; called with no transaction open."""
call_token: Hook[[str, datetime], str] = Hook()
"""A service, `<namespace>/<name>`, and the time; returns a token by which the control plane may call it now."""
service_page: Hook[[int], Mapping[str, Any]] = Hook()
"""A service's id; returns the context of further sections of its page."""
labelled_answers: Hook[[Asked], Answered] = Hook()
"""A question for labelled answers of both sides; returns their sums. Called with no transaction open."""
label_habits: Hook[[int, str, str, datetime, str], Habits] = Hook()
"""A service's id, a scorer, the stable revision, a time and a request parameter (or none); returns what is known of its
labels for requests before that time. Called with no transaction open.
"""
