"""Requests that wait for the first replica of a service: who may wake it, how many wait, and for how long.

                  awake, stopped, or not known -----------------------> goes on
    a request --> a probe, or a caller whose key does not suffice ----> answered, by Envoy's own filters for keys
                  any other of a service without a ready replica -----> waits; one replica is started where it has none

A wait ends with a ready replica, after a minute, or with a failure that lasts; then callers get its kind.

A request that waits is in Envoy, which reads its body no further than the buffer of its connection.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import Counter as Metric
from prometheus_client import Gauge

from common.errors import Conflict, FairleadError
from integrations.clusters.kubernetes.waker.callers import may_wake
from integrations.clusters.kubernetes.waker.calls import ALLOWED, Call, healthy, refused
from integrations.clusters.kubernetes.waker.replicas import Replicas, State
from integrations.clusters.kubernetes.waker.start_failures import StartFailure

logger = logging.getLogger(__name__)
_LOOK_AGAIN_S = 1.0
HELD = Gauge("fairlead_waker_held_requests", "Requests that wait for the first replica of a service now.")
REQUESTS = Metric(
    "fairlead_waker_requests_total",
    "Requests that came while their service had no ready replica, by what became of them.",
    ["result"],
)
STARTS = Metric("fairlead_waker_starts_total", "Starts of first replicas, by their result.", ["result"])
for _result in ("ready", "timed_out", "failed", "too_many", "left"):
    REQUESTS.labels(_result)
for _result in ("started", "refused"):
    STARTS.labels(_result)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of waiting.

    Attributes:
        of_service, of_all: requests that wait at once.
        held_s: how long one waits.
        settle_s: how long it goes on waiting once a replica is ready, until the nodes send connections to it:
            kube-proxy takes up changes once a second.
        failures_s: how often pods are read for the cause of a failure, while requests of their service wait.
    """

    of_service: int = 128
    of_all: int = 512
    held_s: float = 60.0
    settle_s: float = 1.0
    failures_s: float = 5.0


class Waker:
    """Answers Envoy's calls; all of it runs on one event loop, but for `changed`."""

    def __init__(self, replicas: Replicas, limits: Limits | None = None, now: Callable[[], float] = time.time) -> None:
        self._replicas, self._limits, self._now = replicas, limits or Limits(), now
        self._loop = asyncio.get_running_loop()
        self._waiting: Counter[str] = Counter()
        self._changes: dict[str, asyncio.Event] = {}
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[str, StartFailure | None] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}

    @property
    def waiting(self) -> int:
        """Return how many requests wait now."""
        return self._waiting.total()

    def changed(self, services: Iterable[tuple[str, str]]) -> None:
        """Look again at these services, by namespace and name; for other threads."""
        keys = [f"{namespace}/{service}" for namespace, service in services]
        self._loop.call_soon_threadsafe(self._look_again, keys)

    async def answer(self, call: Call) -> bytes:
        """Return the answer to one call, once there is one."""
        state = self._replicas.state(call)
        if state is None or state.is_ready or not state.may_wait or not self._may_wake(state, call):
            return ALLOWED
        if call.is_probe:
            return healthy(call)
        if call.needs_replica:
            return refused(call, f"service {call.key} is asleep: an infer request wakes it")
        if self._waiting[call.key] >= self._limits.of_service or self.waiting >= self._limits.of_all:
            REQUESTS.labels("too_many").inc()
            return refused(
                call, f"{call.key} is asleep, and as many requests wait for its first replica as may; try again soon"
            )
        self._waiting[call.key] += 1
        HELD.inc()
        try:
            return await self._held(call)
        except asyncio.CancelledError:
            REQUESTS.labels("left").inc()
            raise
        finally:
            HELD.dec()
            self._waiting[call.key] -= 1
            if not self._waiting[call.key]:
                del self._waiting[call.key]
                self._changes.pop(call.key, None)
                self._failures.pop(call.key, None)
                if (look := self._looks.pop(call.key, None)) is not None:
                    look.cancel()

    def _may_wake(self, state: State, call: Call) -> bool:
        return state.policy is not None and may_wake(state.policy, call.token, self._now())

    async def _held(self, call: Call) -> bytes:
        deadline = self._loop.time() + self._limits.held_s
        if call.key not in self._looks:
            self._looks[call.key] = self._loop.create_task(self._look_for_failures(call))
        while (left_s := deadline - self._loop.time()) > 0:
            change = self._changes.setdefault(call.key, asyncio.Event())
            state = self._replicas.state(call)
            if state is not None and state.is_ready:
                await asyncio.sleep(self._limits.settle_s)
                if not self._is_ready(call):
                    continue  # it was the replica of before, which ends: the service had just gone to sleep
                REQUESTS.labels("ready").inc()
                return ALLOWED
            if state is not None and not state.may_wait:
                return ALLOWED
            if state is not None and state.is_asleep:
                await self._started(call)
            failure = self._failures.get(call.key)
            if failure is not None and failure.is_lasting:
                REQUESTS.labels("failed").inc()
                return refused(call, f"{call.key} was asleep, and its replica cannot start: {failure}")
            try:
                await asyncio.wait_for(change.wait(), min(left_s, _LOOK_AGAIN_S))
            except TimeoutError:
                continue
        REQUESTS.labels("timed_out").inc()
        failure = self._failures.get(call.key)
        why = "" if failure is None else f": {failure}"
        sentence = f"{call.key} was asleep, and no replica was ready within {self._limits.held_s:g} s{why}"
        return refused(call, f"{sentence}; try again soon")

    def _is_ready(self, call: Call) -> bool:
        state = self._replicas.state(call)
        return state is not None and state.is_ready

    async def _look_for_failures(self, call: Call) -> None:
        """Keep the cause why a replica does not start, until no request of its service waits."""
        while True:
            try:
                self._failures[call.key] = await asyncio.to_thread(self._replicas.failure, call, self._now())
            except FairleadError as error:
                logger.info("why service %s does not start cannot be read: %s", call.key, error.message)
            self._look_again([call.key])
            await asyncio.sleep(self._limits.failures_s)

    async def _started(self, call: Call) -> None:
        """Start a replica, once for all requests that wait for it; the end of one of them ends no start."""
        task = self._starts.get(call.key)
        if task is None:
            task = self._starts[call.key] = self._loop.create_task(self._start(call))
            task.add_done_callback(lambda _: self._starts.pop(call.key, None))
        await asyncio.shield(task)

    async def _start(self, call: Call) -> None:
        try:
            if await asyncio.to_thread(self._replicas.start, call):
                STARTS.labels("started").inc()
                logger.info("a request wakes service %s", call.key)
        except Conflict:
            logger.info("service %s was changed while a request was to wake it; it is tried again", call.key)
        except FairleadError as error:
            STARTS.labels("refused").inc()
            logger.warning("service %s cannot be woken: %s", call.key, error.message)

    def _look_again(self, keys: Iterable[str]) -> None:
        for key in keys:
            if (change := self._changes.pop(key, None)) is not None:
                change.set()
