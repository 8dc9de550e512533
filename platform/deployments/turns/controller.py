"""Controller: has turns to the services of Kubernetes clusters, many at once, where the clusters' watches run.

    due in the database, every half second --.
                                              >-- queue --> threads: a look at a cluster, or a turn to a service
    hints of the watches --------------------'

Controllers that run share the clusters (`shards`). A cluster is one controller's at a time, by a claim that it renews;
where a controller is gone the claim runs out, and another one, or the workers' sweeps, go on. A cluster that becomes
another one's is left once its turns have ended. What is due is read from the database, so that no hint is lost with a
process.
"""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone
from prometheus_client import Gauge

from clusters.models import Cluster
from clusters.services.connection import LOCAL
from common.errors import FairleadError
from common.places import Places
from common.randomness import new_id
from deployments import hooks
from deployments.reconcile import cluster_claim, controllers, schedule
from deployments.reconcile.cluster_claim import ClusterClaim
from deployments.reconcile.memory import Memory
from deployments.reconcile.reconciler import Outcome
from deployments.reconcile.renewal import RENEW_EVERY_S
from deployments.turns.resting import Resting
from deployments.turns.shards import shard
from deployments.turns.sweep import looked_at, metrics_by, turn
from deployments.turns.turn_queue import TurnQueue
from integrations.clusters.base import ClusterDriver

logger = logging.getLogger(__name__)
CLUSTERS = Gauge("fairlead_controller_clusters", "Kubernetes clusters whose services this controller turns to.")
TURNS = Gauge("fairlead_controller_turns", "Turns to services that have begun and not ended.")
_POLL_S = 0.5
_LOOK_S, _AFTER_FAILURE_S = 5.0, 2.0
_END_S = 15.0
_COMPUTE = 4
"""Turns that compute at once, while others wait for clusters; more than one, since turns wait for the database too."""


@dataclass
class _Held:
    """A cluster of this controller.

    Attributes:
        claim: while it lasts, the cluster is this controller's.
        driver: by which its services are turned to; None until the cluster was looked at.
        answers: the last look reached it.
        look_at: monotonic seconds of the next look; None while one goes on.
        looked_at: those of the end of the last one.
        file_at: when the cluster's file had last changed, as of that look.
        leaves: it is another controller's now, and no turn begins any more.
    """

    claim: ClusterClaim
    driver: ClusterDriver | None = None
    answers: bool = False
    look_at: float | None = 0.0
    looked_at: float = float("-inf")
    file_at: datetime | None = None
    leaves: bool = False

    @property
    def able(self) -> ClusterDriver | None:
        """The driver by which turns may begin."""
        return None if self.leaves else self.driver

    def may_be_away(self, now: float) -> bool:
        """Return whether the cluster answered the last look, some time ago."""
        return self.answers and self.look_at is not None and now - self.looked_at >= _AFTER_FAILURE_S


class Controller:
    """Turns to services until it is stopped; `at_once` turns have begun and not ended at most."""

    def __init__(self, at_once: int) -> None:
        self._name = new_id().hex
        self._at_once = at_once
        self._shard: set[int] = set()
        self._held: dict[int, _Held] = {}
        self._queue = TurnQueue(at_once)
        self._resting = Resting()
        self._memory = Memory(time.monotonic)
        self._places = Places(_COMPUTE)
        self._changed = threading.Condition()
        self._ends = False
        self._renewed_at = float("-inf")

    def clusters(self) -> set[int]:
        """Return the clusters that this controller has, or is to have: those whose changes it needs."""
        with self._changed:
            return self._shard | self._held.keys()

    def hint(self, cluster_id: int, services: Iterable[tuple[str, str]]) -> Iterable[int]:
        """Turn soon to services, by namespace and name, whose objects changed; returns how many of them there are."""
        names = list(services)
        rows = schedule.named(cluster_id, names)
        schedule.touch(rows)  # where this process ends before their turns
        found = list(rows.values_list("pk", flat=True))
        with self._changed:
            if cluster_id in self._held:
                for service_id in found:
                    self._queue.offer(cluster_id, service_id, is_hint=True)
                self._changed.notify_all()
        return [len(found)]

    def run(self, stopped: threading.Event) -> None:
        """Have turns until `stopped`; then those that have begun end, and the clusters are given back."""
        threads = [threading.Thread(target=self._work, name=f"turn-{n}", daemon=True) for n in range(self._at_once)]
        for thread in threads:
            thread.start()
        try:
            while not stopped.wait(_POLL_S):
                try:
                    self._poll()
                except DatabaseError as error:
                    logger.warning("the database is unavailable, so no service is turned to: %s", error)
                    connection.close()
                except Exception:
                    logger.exception("what is due could not be read; it is tried again")
        finally:
            self._end(threads)

    def _poll(self) -> None:
        """Renew the claims where it is time, and offer what is due."""
        now, monotonic = timezone.now(), time.monotonic()
        if monotonic - self._renewed_at >= RENEW_EVERY_S:
            self._renewed_at = monotonic
            self._renew(now)
        with self._changed:
            able = {key: each.able for key, each in self._held.items() if each.able is not None}
        due = schedule.due_on(able, now=now, interval=timedelta(seconds=settings.RECONCILE_INTERVAL_S), every_s=_POLL_S)
        rest, stir = self._resting.split(due.settled, able, monotonic)
        schedule.ticked(rest, now=now)
        with self._changed:
            for cluster_id, service_id in due.moving:
                self._queue.offer(cluster_id, service_id)
            for row in stir:
                self._queue.offer(row.cluster_id, row.pk, is_settled=True)
            TURNS.set(sum(self._queue.running(each) for each in self._held))
            self._changed.notify_all()

    def _renew(self, now: datetime) -> None:
        """Renew the claims, take free clusters of this controller's shard, and leave what is not in it any more."""
        running = controllers.beat(self._name, now=now)
        everywhere = Cluster.objects.exclude(kind=LOCAL).values_list("pk", flat=True)
        own = shard(self._name, controllers=running, clusters=list(everywhere))
        with self._changed:
            self._shard = own
            claims = {key: each.claim for key, each in self._held.items()}
        lost = cluster_claim.renew_all(claims, now=now)
        free = own.intersection(cluster_claim.clusters_free(now=now))
        taken = {key: cluster_claim.take(key, now=now) for key in free}
        with self._changed:
            for key in lost:
                self._drop(key)
            self._held |= {key: _Held(claim) for key, claim in taken.items() if claim is not None}
            for key, held in self._held.items():
                held.leaves = key not in own
            left = [key for key, held in self._held.items() if held.leaves and not self._queue.running(key)]
            given_back = [self._drop(key) for key in left]
            CLUSTERS.set(len(self._held))
        for claim in given_back:
            claim.release()

    def _drop(self, cluster_id: int) -> ClusterClaim:
        self._queue.leave(cluster_id)
        return self._held.pop(cluster_id).claim

    def _work(self) -> None:
        """Have one look or turn after the other, until the end."""
        while True:
            with self._changed:
                work = self._next()
                while work is None and not self._ends:
                    self._changed.wait(_POLL_S)
                    work = self._next()
                if work is None:
                    break
            cluster_id, service_id, driver = work
            try:
                if service_id is None or driver is None:
                    self._look(cluster_id)
                else:
                    with self._places.held():
                        self._turn(cluster_id, service_id, driver)
            except Exception:
                logger.exception("a turn on cluster %s failed", cluster_id)
            if connection.errors_occurred:  # else it is kept: a new one for each turn costs more than the turn
                connection.close()
        connection.close()

    def _next(self) -> tuple[int, int | None, ClusterDriver | None] | None:
        """Return what to do next: a look at a cluster, or a turn to a service with its driver; under the lock."""
        if self._ends:
            return None
        now = time.monotonic()
        for cluster_id, held in self._held.items():
            if held.look_at is not None and held.look_at <= now and not held.leaves:
                held.look_at = None
                return cluster_id, None, None
        found = self._queue.next({key for key, each in self._held.items() if each.able is not None})
        return None if found is None else (*found, self._held[found[0]].driver)

    def _look(self, cluster_id: int) -> None:
        driver, answers, is_changed = None, False, False
        try:
            cluster = Cluster.objects.get(pk=cluster_id)
            driver, answers = looked_at(cluster)
            if answers:
                hooks.cluster_observed(cluster, driver, timezone.now)
        except Cluster.DoesNotExist:
            return
        except FairleadError as error:
            logger.warning("cluster %s cannot be looked at: %s", cluster_id, error)
        finally:
            with self._changed:
                held = self._held.get(cluster_id)
                if held is not None:
                    if driver is not None:
                        is_changed = held.file_at not in (None, cluster.changed_at)
                        held.file_at = cluster.changed_at
                    held.driver, held.answers, held.looked_at = driver or held.driver, answers, time.monotonic()
                    held.look_at = held.looked_at + _LOOK_S
                    self._changed.notify_all()
        if is_changed:
            schedule.touch_running_on(cluster)  # a turn since the change may have been by the driver of before

    def _turn(self, cluster_id: int, service_id: int, driver: ClusterDriver) -> None:
        outcome: Outcome | None = None
        try:
            if self._resting.sample(service_id, driver, metrics_by(driver), time.monotonic()):
                outcome = Outcome.DONE
                return
            outcome = turn(service_id, driver, self._memory)
            if outcome is Outcome.DONE and not self._memory.has(service_id):  # it has none that settled
                self._resting.turned_to(service_id, driver, time.monotonic())
        finally:
            with self._changed:
                if outcome is Outcome.OVERTAKEN:
                    self._queue.offer(cluster_id, service_id, is_hint=True)
                self._queue.done(cluster_id, service_id)
                held = self._held.get(cluster_id)
                if outcome is None and held is not None and held.may_be_away(time.monotonic()):
                    # Of many services the first ones that find the cluster away are the last ones that wait for it. A
                    # turn may fail for another reason too, and all others wait for the look.
                    held.driver, held.look_at = None, 0.0
                self._changed.notify()

    def _end(self, threads: Iterable[threading.Thread]) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        ends_at = time.monotonic() + _END_S
        for thread in threads:
            thread.join(max(0.0, ends_at - time.monotonic()))
        try:
            controllers.leave(self._name)
        except DatabaseError as error:
            logger.warning("others learn of this end from its silence: %s", error)
        for held in self._held.values():
            held.claim.release()
