"""Kubernetes watches: maps changes on clusters to the services that need reconciling.

    the clusters' watches --> which services --> each at most once a second --> its next turn

The controller of this process turns to the service; its row is marked, so that another process does where this one
ends. While this process is down, sweeps select more of the settled services.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime

from django.db import DatabaseError, close_old_connections
from prometheus_client import Counter, Gauge

from clusters import hooks
from clusters.models import KUBERNETES, Cluster
from common.errors import FairleadError
from integrations.clusters.drivers import use_cache
from integrations.clusters.kubernetes.access import Access
from integrations.clusters.kubernetes.watches import Cache, Coalescer, Watcher
from integrations.clusters.kubernetes.watches.coalesce import Service
from integrations.clusters.kubernetes.watches.watcher import Standing

logger = logging.getLogger(__name__)
WATCHES = Gauge("fairlead_watches", "Watches that stream now, of a Kubernetes cluster.", ["cluster"])
WAKES = Counter("fairlead_watch_wakes_total", "Hints to turn to a service, since its objects changed.", ["cluster"])
EVERY_S = 1.0
"""Minimum interval between two hints for one service."""
_REFRESH_S = 5.0
_LONGEST_TURN_S = 1.0


class Follower:
    """Watches the Kubernetes clusters of its shard that have services; one thread calls `refresh` and `turn`.

    Args:
        reach: returns how a cluster's API server is reached; its errors are shown on the cluster.
        now: the time, with time zone; `monotonic` is seconds since any moment.
        touch: has services reconciled soon, by the id of their cluster and their namespaces and names; returns how
            many of them there are, once or more.
        shard: returns the ids of the clusters that this process watches now; without it all are.
    """

    def __init__(
        self,
        reach: Callable[[Cluster], Access],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        touch: Callable[[int, list[Service]], Iterable[int]] = hooks.services_touched,
        shard: Callable[[], set[int]] | None = None,
    ) -> None:
        self._reach = reach
        self._touch = touch
        self._shard = shard
        self._now, self._monotonic = now, monotonic
        self._followed: dict[int, _Followed] = {}
        self._changed: set[tuple[int, Service]] = set()
        self._something = threading.Condition()

    def run(self, stopped: threading.Event) -> None:
        """Watch until `stopped`."""
        refreshed_at, shard = float("-inf"), None
        while not stopped.is_set():
            now, before = self._monotonic(), shard
            shard = None if self._shard is None else self._shard()
            try:
                if now - refreshed_at >= _REFRESH_S or shard != before:
                    refreshed_at = now
                    self.refresh()
                self.turn(_LONGEST_TURN_S)
            except DatabaseError as error:
                logger.warning("the database is unavailable, so no hints are sent: %s", error)
                close_old_connections()
                stopped.wait(_LONGEST_TURN_S)

    def refresh(self) -> None:
        """Watch the clusters and namespaces that the database names now, and record the state of the watches."""
        wanted: dict[int, set[str]] = defaultdict(set)
        used = Cluster.objects.filter(kind=KUBERNETES, services__isnull=False)
        if self._shard is not None:
            used = used.filter(pk__in=self._shard())
        for cluster_id, namespace in used.values_list("pk", "services__namespace").distinct():
            wanted[cluster_id].add(namespace)
        for cluster_id in self._followed.keys() - wanted.keys():
            self._leave(cluster_id)
        standing: dict[Standing, list[int]] = defaultdict(list)
        for cluster in Cluster.objects.filter(pk__in=wanted).only("name", "kind", "document", "credentials"):
            try:
                state = self._follow(cluster, wanted[cluster.pk])
            except FairleadError as error:
                logger.warning("cluster %s cannot be watched: %s", cluster.name, error)
                self._leave(cluster.pk)
                state = Standing(0, 0, (error.message,))
            WATCHES.labels(cluster.name).set(state.streaming)
            standing[state].append(cluster.pk)
        for state, clusters in standing.items():
            self._record(state, clusters)

    def turn(self, timeout_s: float) -> None:
        """Wait until a service is due, at most for that long, and send the hints."""
        with self._something:
            waits = (each.due.next_s(self._monotonic()) for each in self._followed.values())
            first = min((wait for wait in waits if wait is not None), default=timeout_s)
            self._something.wait_for(lambda: self._changed, min(first, timeout_s))
            changed, self._changed = self._changed, set()
        for cluster_id, service in changed:
            if cluster_id in self._followed:
                self._followed[cluster_id].due.add([service])
        for cluster_id, each in self._followed.items():
            if due := each.due.due(self._monotonic()):
                WAKES.labels(each.name).inc(sum(self._touch(cluster_id, due)))

    def close(self) -> None:
        """End all watches."""
        for cluster_id in list(self._followed):
            self._leave(cluster_id)

    def _follow(self, cluster: Cluster, namespaces: Iterable[str]) -> Standing:
        access = self._reach(cluster)
        followed = self._followed.get(cluster.pk)
        if followed is not None and followed.access != access:
            self._leave(cluster.pk)
            followed = None
        if followed is None:
            cache = Cache()
            followed = _Followed(cluster.name, access, Watcher(access, cache, self._reporter(cluster.pk)))
            self._followed[cluster.pk] = followed
            use_cache(cluster.name, access, cache)
        followed.watcher.follow(namespaces)
        return followed.watcher.standing()

    def _leave(self, cluster_id: int) -> None:
        followed = self._followed.pop(cluster_id, None)
        if followed is not None:
            use_cache(followed.name, followed.access, None)
            followed.watcher.close()
            WATCHES.remove(followed.name)

    def _reporter(self, cluster_id: int) -> Callable[[set[Service]], None]:
        def report(services: set[Service]) -> None:
            with self._something:
                self._changed |= {(cluster_id, service) for service in services}
                self._something.notify()

        return report

    def _record(self, standing: Standing, clusters: Iterable[int]) -> None:
        watch = {
            "streaming": standing.streaming,
            "total": standing.total,
            "problems": list(standing.problems),
            "seen_at": self._now().isoformat(),
        }
        Cluster.objects.filter(pk__in=clusters).update(watch=watch)


class _Followed:
    """One watched cluster."""

    def __init__(self, name: str, access: Access, watcher: Watcher) -> None:
        self.name = name
        self.access = access
        self.watcher = watcher
        self.due = Coalescer(EVERY_S)
