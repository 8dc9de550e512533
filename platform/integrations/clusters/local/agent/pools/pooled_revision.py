"""A revision in a pool: no replicas of its own, the pool's answer for it once its model is loaded.

    waiting for the pool --> loading --loaded--> ready --no replica left--> waiting
                                 ^  '--failed--> waiting a while
                                 '--------------------'

The model is loaded where the gateway sends its requests, before the first of them comes. Where several replicas are to
have a copy of it, each gets requests once it has loaded it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from urllib.parse import quote

import httpx

from integrations.clusters.base import DesiredRevision, Failure, FailureReason, ObservedReplica, ReplicaPhase
from integrations.clusters.local.agent.pools.members import Pools
from integrations.clusters.local.agent.replicas.replica import Replica
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.envoy import maglev
from integrations.clusters.local.envoy.pools import hashed, homes
from integrations.clusters.local.envoy.values import RevisionEndpoints

log = logging.getLogger(__name__)

_LOAD_S = 600.0


class PooledRevision:
    """One revision whose requests a pool's replicas answer; it has the interface of `RunningRevision`.

    Attributes:
        replicas: its own, of which it has none.
        is_spare: its own replicas answer; the pool keeps nothing loaded for it.
        rests: it has all requests of its service, by the pool's own clusters. Its model is loaded by requests then.
        slept_at: 0: it never is asleep.
        copies: as of `Backend`.
    """

    slept_at = 0.0
    is_waking = False
    why_failed = ""

    def __init__(
        self,
        pools: Pools,
        namespace: str,
        revision: DesiredRevision,
        *,
        timing: Timing,
        changed: Callable[[], None],
        is_loaded: bool = False,
    ) -> None:
        """Take it up; `is_loaded` if the pool answered for it below an earlier agent."""
        self.revision = revision
        self.mirrored = False
        self.rests = False
        self.is_spare = False
        self.was_ready = False
        self.replicas: list[Replica] = []
        self.copies: tuple[str, ...] = ()
        self._pools = pools
        self._namespace = namespace
        self._timing = timing
        self._changed = changed
        self._wanted = 0
        self._left_at = float("-inf")
        self._home: Replica | None = None
        self._loaded_at = {""} if is_loaded else set[str]()
        self._failure: Failure | None = None
        self._failures = 0
        self._loading: asyncio.Task[None] | None = None
        self._copied_to: dict[str, str] = {}  # replica by what is hashed, of copies that are loaded
        self._copying: asyncio.Task[None] | None = None
        self._copy_failures = 0

    @property
    def ready(self) -> int:
        """Return how many of the pool's replicas answer for it."""
        return len(self._members()) if self._wanted and self._loaded_at else 0

    @property
    def is_settled(self) -> bool:
        """Return whether nothing of the pool makes a difference to it but whether a replica is ready."""
        return self.rests and bool(self._loaded_at) and not self.is_spare and self._number() == 1

    @property
    def present(self) -> int:
        """Return whether the pool answers for it, or is to."""
        return int(self._wanted > 0)

    @property
    def is_over(self) -> bool:
        """Return whether the gateway has had the time to send its requests elsewhere."""
        return not self._wanted and asyncio.get_running_loop().time() >= self._left_at + self._timing.gateway_s

    def scale(self, wanted: int, *, held: bool = False) -> None:  # noqa: ARG002 - a pool's number is the pool's
        """Be answered for, or no longer; see that its model is loaded."""
        loop = asyncio.get_running_loop()
        if self._wanted and not wanted:
            self._left_at = loop.time()
            self.changes_in(self._timing.gateway_s)
        self._wanted = wanted
        self.was_ready = wanted > 0 and (self.was_ready or self.ready > 0)
        self._keep_copies()
        if not wanted:
            return
        if self.is_spare:
            self._loaded_at.clear()
            return
        if self.is_settled:
            return
        home = self._home_among(self._members())
        if home is None:
            self._loaded_at.clear()
        elif home.name not in self._loaded_at and (self._loading is None or self._loading.done()):
            self._loading = asyncio.create_task(self._load(home), name=f"load {self.key}")

    def endpoints(self) -> RevisionEndpoints:
        """Return the addresses of the pool's replicas."""
        found = self._pools.endpoints(self.revision.pool)
        return RevisionEndpoints(self._namespace, self.revision.name, found, mirrored=self.mirrored, pooled=True)

    def observed(self) -> tuple[ObservedReplica, ...]:
        """Return one replica in the place of the pool's, which `LocalDriver.observe` adds."""
        members = self._members() if self._wanted else ()
        if not members:
            message = f"it waits for a replica of pool {self.revision.pool}" if self._wanted else ""
            waiting = ObservedReplica(self.revision.name, ReplicaPhase.STARTING, message=message, failure=self._failure)
            return (waiting,) if self._wanted else ()
        if not self.ready:
            message = self._failure.message if self._failure else f"pool {self.revision.pool} loads its model"
            return (ObservedReplica(members[0].name, ReplicaPhase.STARTING, message=message, failure=self._failure),)
        number = self.revision.restart_number
        return (ObservedReplica(self.revision.name, ReplicaPhase.READY, restart_number=number),)

    def changes_in(self, seconds: float) -> None:
        """Have the service looked at again after that time."""
        asyncio.get_running_loop().call_later(seconds, self._changed)

    def take_over(self) -> None:
        """Answer at once in place of its own replicas that failed; requests load its model."""
        self.is_spare, self._loaded_at = False, {""}

    async def remove(self) -> None:
        """Have nothing more to do with it."""
        if tasks := {each for each in (self._loading, self._copying) if each is not None}:
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)

    @property
    def key(self) -> str:
        """Return the name of its model in a pool's replicas, `namespace.service@version`."""
        return f"{self._namespace}.{self.revision.model_name}@{self.revision.model_version}"

    def _members(self) -> Sequence[Replica]:
        return [each for each in self._pools.replicas(self.revision.pool) if each.ready]

    def _home_among(self, members: Sequence[Replica]) -> Replica | None:
        if not members:
            return None
        name = hashed(self._namespace, self.revision.model_name)
        return members[maglev.chosen([each.name for each in members], name)]

    def _number(self) -> int:
        """Return how many replicas are to have its model."""
        if not self._wanted or not self._loaded_at or self.is_spare:
            return 1
        return self._pools.copies(self.revision.pool, (self._namespace, self.revision.model_name))

    def _keep_copies(self) -> None:
        """See that each replica that is to have a copy loads it, and say in `copies` which have."""
        number = self._number()
        members = self._members() if number > 1 else ()
        found = homes(self._namespace, self.revision.model_name, [each.name for each in members], number)
        first, *further = found or [""]
        self._copied_to = {
            key: name for key, name in self._copied_to.items() if key in further and members[found[key]].name == name
        }
        loaded = [key for key in further if key in self._copied_to]
        self.copies = (first, *loaded) if loaded else ()
        missing = next((key for key in further if key not in self._copied_to), None)
        if missing is not None and (self._copying is None or self._copying.done()):
            home = members[found[missing]]
            self._copying = asyncio.create_task(self._copy(missing, home), name=f"copy {self.key}")

    async def _copy(self, key: str, home: Replica) -> None:
        async with self._pools.loading(self.revision.pool):
            why = await _asked_to_load(home, self.key)
        if why:
            self._copy_failures += 1
            wait_s = self._timing.backoff_s(self._copy_failures)
            log.warning("%s: %s cannot load a copy: %s; trying again after %g s", self.key, home.name, why, wait_s)
            await asyncio.sleep(wait_s)
        else:
            self._copy_failures = 0
            self._copied_to[key] = home.name
        self._copying = None
        self._changed()

    async def _load(self, home: Replica) -> None:
        async with self._pools.loading(self.revision.pool):
            why = await _asked_to_load(home, self.key)
        if not why:
            self._loaded_at, self._failure, self._failures = {home.name}, None, 0
            self._changed()
            return
        self._failures += 1
        wait_s = self._timing.backoff_s(self._failures)
        message = f"pool {self.revision.pool} cannot load it: {why}; it tries again after {wait_s:g} s"
        self._failure = Failure(FailureReason.MODEL_LOAD_FAILED, message, time.time(), replica=home.name)
        log.warning("%s: %s", self.key, message)
        self._changed()
        await asyncio.sleep(wait_s)
        self._loading = None
        self._changed()


async def _asked_to_load(replica: Replica, key: str) -> str:
    """Have a replica load a model version; return why it could not, or nothing."""
    admin = replica.admin
    if admin is None:
        return "its replica has just ended"
    # It is plain HTTP on this machine: certificates would be read for each load.
    transport = httpx.AsyncHTTPTransport(uds=admin if isinstance(admin, str) else None, verify=False)
    base = "http://localhost" if isinstance(admin, str) else f"http://127.0.0.1:{admin}"
    try:
        async with httpx.AsyncClient(transport=transport, timeout=_LOAD_S, trust_env=False) as client:
            answer = await client.post(f"{base}/v2/repository/models/{quote(key, safe='@.')}/load")
            if answer.status_code == httpx.codes.OK:
                return ""
            return str(answer.json().get("error", ""))[:500] or f"it answered {answer.status_code}"
    except (httpx.HTTPError, OSError, ValueError) as error:
        return f"its replica did not answer: {error}"
