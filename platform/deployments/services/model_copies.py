"""Copies of deployed models in the buckets from which clusters' pods take them.

A pass uploads what the buckets lack. A pod that starts before takes its model from the registry, which is there as long
as uploads are. What was found in a bucket is believed for some hours, then listed again.
"""

import logging
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from prometheus_client import Gauge

from clusters.models import Cluster
from clusters.services.connection import file_of
from common.errors import FairleadError
from deployments.domain.service_state.desired import Role
from deployments.models import Revision
from integrations.artifacts.bucket_copies import copy_to
from integrations.clusters.kubernetes.manifests.workloads.model_sources import place_in
from registry.storage import store

logger = logging.getLogger(__name__)
MISSING = Gauge(
    "fairlead_models_without_copy",
    "Deployed models of a cluster whose copy in its bucket could not be made.",
    ["cluster"],
)
_BELIEVED_FOR = timedelta(hours=6)


@dataclass
class Copier:
    """Makes copies, one pass at a time in a process; remembers the places that have theirs."""

    _there: dict[str, datetime] = field(default_factory=dict)
    _pass: threading.Lock = field(default_factory=threading.Lock)

    def copy(self, *, now: datetime) -> None:
        """Upload the models that services' revisions need and their clusters' buckets lack; logs what cannot be."""
        if not self._pass.acquire(blocking=False):
            return
        try:
            self._there = {place: seen for place, seen in self._there.items() if seen > now - _BELIEVED_FOR}
            for cluster in Cluster.objects.filter(document__artifacts__from="bucket"):
                MISSING.labels(cluster.name).set(self._copy_of(cluster, now))
        finally:
            self._pass.release()

    def _copy_of(self, cluster: Cluster, now: datetime) -> int:
        """Return how many models of a cluster have no copy."""
        file = file_of(cluster)
        if file is None:
            return 0
        running = Revision.objects.filter(service__cluster=cluster, stopped_at=None).exclude(role=Role.RETIRED.value)
        digests = running.values_list("model_version__digest", flat=True).distinct().order_by()
        failed = 0
        for digest in digests:
            place = place_in(file.options.bucket, digest)
            if place in self._there:
                continue
            try:
                count = copy_to(place, store().path_of(digest))
            except FairleadError as error:
                failed += 1
                logger.warning("cluster %s: the model %s has no copy: %s", cluster.name, digest, error.message)
                continue
            self._there[place] = now
            if count:
                logger.info("cluster %s: copied %s files to %s", cluster.name, count, place)
        return failed


copier = Copier()
