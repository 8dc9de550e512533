"""Controller of custom resources: follows the objects of the clusters that this process watches.

    watches of objects --.
    changed services ----+--> namespace and name --> version, policy, service, rollout of that name, one after the other
    what was refused ----'

A cluster's file says whether its objects are followed (`customResources`). What is due is found from the database and
from the watches' lists, so that nothing is lost with a process.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from django.db import DatabaseError, close_old_connections, connection
from django.db.models import F, Q
from django.utils import timezone

from accounts.domain.roles import Owned
from accounts.models import Ownership
from clusters.models import KUBERNETES, Cluster
from clusters.services.connection import access_to, file_of
from common.errors import Conflict, FairleadError, Unavailable
from custom_resources.models import ResourceObject
from custom_resources.reconcile import kserve, policies, rollouts, services, versions
from integrations.clusters.kubernetes.access import Access
from integrations.clusters.kubernetes.custom_resources import KSERVE, OWN, CustomResources

logger = logging.getLogger(__name__)
_POLL_S, _AGAIN_S, _REFRESH_S, _EVERYTHING_S = 1.0, 2.0, 5.0, 600.0
_AT_ONCE = 4
_MOST = 500
_DEFAULT = "default"
Key = tuple[str, str]
FOLLOWS = (
    (versions.KIND, versions.version_follow),
    (policies.KIND, policies.policy_follow),
    (services.KIND, services.service_follow),
    (KSERVE, kserve.kserve_follow),
    (rollouts.KIND, rollouts.rollout_follow),
)
"""In the order in which one needs the other."""


def _namespaces(cluster: Cluster) -> set[str]:
    """Return the namespaces whose objects are watched where those of all are not permitted.

    They are those of a team, and those of services on the cluster.
    """
    owned = Ownership.objects.filter(kind=Owned.NAMESPACE).values_list("name", flat=True)
    return {_DEFAULT, *owned, *cluster.services.values_list("namespace", flat=True).distinct()}


@dataclass
class _Followed:
    """A cluster whose objects are followed.

    Attributes:
        changed: namespaces and names to look at.
        later: those that are looked at again, at monotonic seconds.
        everything_at: monotonic seconds at which all objects are looked at again.
    """

    cluster: Cluster
    access: Access
    objects: CustomResources
    changed: set[Key] = field(default_factory=set)
    later: dict[Key, float] = field(default_factory=dict)
    everything_at: float = 0.0

    def taken(self, now: float) -> set[Key]:
        """Take the namespaces and names to look at now."""
        due = self.changed | {key for key, at in self.later.items() if at <= now}
        self.changed, self.later = set(), {key: at for key, at in self.later.items() if key not in due}
        return due


class ObjectController:
    """Follows the objects of some clusters until it is stopped.

    Args:
        shard: returns the ids of the clusters that this process watches now.
    """

    def __init__(self, shard: Callable[[], set[int]]) -> None:
        self._shard = shard
        self._followed: dict[int, _Followed] = {}
        self._something = threading.Condition()
        self._refreshed_at = float("-inf")

    def run(self, stopped: threading.Event) -> None:
        """Follow objects until `stopped`."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="objects") as pool:
            while not stopped.is_set():
                try:
                    self.turn(pool.map)
                except DatabaseError as error:
                    logger.warning("the database is unavailable, so no object is followed: %s", error)
                    close_old_connections()
                except Exception:
                    logger.exception("what is due of objects could not be read; it is tried again")
                    stopped.wait(_AGAIN_S)
                with self._something:
                    self._something.wait_for(lambda: any(each.changed for each in self._followed.values()), _POLL_S)
        self.close()

    def turn(self, each_of: Callable[..., Iterable[None]] = map) -> None:
        """Look once at all that is due; `each_of` calls a function for each, as `map` does."""
        if time.monotonic() - self._refreshed_at >= _REFRESH_S:
            self._refreshed_at = time.monotonic()
            self.refresh()
        for cluster_id, key in self._due_rows():
            self._followed[cluster_id].changed.add(key)
        with self._something:
            due = [(each, key) for each in self._followed.values() for key in each.taken(time.monotonic())]
        for _ in each_of(lambda one: self._follow(*one), due):
            pass

    def refresh(self) -> None:
        """Watch the objects of the clusters whose files say so now."""
        wanted = {each.pk: each for each in Cluster.objects.filter(kind=KUBERNETES, pk__in=self._shard())}
        for cluster_id in self._followed.keys() - wanted.keys():
            self._leave(cluster_id)
        for cluster in wanted.values():
            try:
                self._watch(cluster)
            except FairleadError as error:
                logger.warning("the objects of cluster %s cannot be watched: %s", cluster.name, error)
                self._leave(cluster.pk)

    def close(self) -> None:
        """End all watches."""
        for cluster_id in list(self._followed):
            self._leave(cluster_id)

    def _watch(self, cluster: Cluster) -> None:
        file = file_of(cluster)
        if file is None or not file.custom_resources:
            self._leave(cluster.pk)
            return
        access, known = access_to(cluster), self._followed.get(cluster.pk)
        kinds = (*OWN, KSERVE) if file.kserve_objects else OWN
        if known is not None and (known.access, known.objects.kinds) != (access, kinds):
            self._leave(cluster.pk)
            known = None
        if known is None:
            known = _Followed(cluster, access, CustomResources(access, self._reporter(cluster.pk), kinds))
            self._followed[cluster.pk] = known
        known.cluster = cluster
        namespaces = _namespaces(cluster)
        known.objects.follow(namespaces)
        is_known = any(known.objects.is_known(services.KIND, each) for each in namespaces)
        if time.monotonic() >= known.everything_at and is_known:
            known.everything_at = time.monotonic() + _EVERYTHING_S
            rows = ResourceObject.objects.filter(cluster=cluster).values_list("namespace", "name")
            with self._something:
                known.changed |= known.objects.names() | set(rows)

    def _leave(self, cluster_id: int) -> None:
        known = self._followed.pop(cluster_id, None)
        if known is not None:
            known.objects.close()

    def _reporter(self, cluster_id: int) -> Callable[[set[Key]], None]:
        def report(names: set[Key]) -> None:
            with self._something:
                known = self._followed.get(cluster_id)
                if known is not None:
                    known.changed |= names
                    self._something.notify()

        return report

    def _due_rows(self) -> Iterable[tuple[int, Key]]:
        """Yield objects whose services changed since their status was written, and those that are tried again."""
        changed = Q(kind__in=(services.KIND, KSERVE), service__changes__gt=F("written"))
        rows = ResourceObject.objects.filter(changed | Q(retry_at__lte=timezone.now()), cluster__in=self._followed)
        for cluster_id, namespace, name in rows.values_list("cluster", "namespace", "name")[:_MOST]:
            yield cluster_id, (namespace, name)

    def _follow(self, followed: _Followed, key: Key) -> None:
        """Follow the objects of a namespace and name, of all kinds that are known as they are."""
        try:
            for kind, follow in FOLLOWS:
                if followed.objects.is_known(kind, key[0]):
                    follow(followed.cluster, followed.objects, *key, clock=timezone.now)
        except Conflict as error:  # it was changed since it was read, which its watch reports
            logger.info("object %s/%s of cluster %s: %s", *key, followed.cluster.name, error)
            self._again(followed, key)
        except (Unavailable, DatabaseError) as error:
            logger.warning("object %s/%s of cluster %s waits: %s", *key, followed.cluster.name, error)
            self._again(followed, key)
        except Exception:
            logger.exception("object %s/%s of cluster %s cannot be followed", *key, followed.cluster.name)
        if connection.errors_occurred:
            connection.close()

    def _again(self, followed: _Followed, key: Key) -> None:
        with self._something:
            followed.later[key] = time.monotonic() + _AGAIN_S
