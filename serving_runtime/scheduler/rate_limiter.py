"""Rate limiter (Triton: rate limiter, execution_count): runs wait for resources that all models share.

A resource is a number under a name, given by the server or as large as the largest claim of one instance. Waiting
claims are served by executions so far times priority, so a priority of 2 gets half the chances of 1. No claim
overtakes one that needs more than is free: large claims would starve. Instances' threads wait, not the event loop.
"""

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from serving_runtime.common.errors import ModelError
from serving_runtime.config.instances import InstanceGroup
from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.execution.instance import Execute
from serving_runtime.scheduler.job import Job

Limit: TypeAlias = Callable[[Execute], Execute]
"""Wraps the function that runs jobs, so that it first waits for its resources."""


class Claim:
    """The resources that one instance needs for a run.

    Attributes:
        executions: runs so far.
    """

    def __init__(self, resources: Mapping[str, int], priority: int) -> None:
        self.resources = resources
        self.priority = priority
        self.executions = 0


def granted(waiting: Sequence[Claim], free: Mapping[str, int]) -> list[Claim]:
    """Return which of the waiting claims, in the order of arrival, may run now. Pure."""
    left = dict(free)
    found: list[Claim] = []
    for claim in sorted(waiting, key=lambda claim: claim.executions * claim.priority):
        if any(left[name] < count for name, count in claim.resources.items()):
            break
        for name, count in claim.resources.items():
            left[name] -= count
        found.append(claim)
    return found


class RateLimiter:
    """The resources of a server; safe to use from several threads.

    Args:
        sizes: of the resources that the server configures; others are as large as the largest claim.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._claims: weakref.WeakSet[Claim] = weakref.WeakSet()
        self._waiting: list[Claim] = []
        self._running: list[Claim] = []
        self._changed = threading.Condition()

    def limit(self, groups: Iterable[InstanceGroup], model: str) -> Limit:
        """Return a wrapper that makes runs of a model wait; raises ModelError where they would wait for ever."""
        claims = [Claim(group.resources, group.priority) for group in groups for _ in range(group.count)]
        for claim in claims:
            for name, count in claim.resources.items():
                if count > self._sizes.get(name, count):
                    raise ModelError(
                        f"model '{model}': an instance needs {count} of resource '{name}', but --rate-limit-resource "
                        f"gives {self._sizes[name]}"
                    )
        with self._changed:
            self._claims.update(claims)

        def limited(execute: Execute) -> Execute:
            def execute_when_granted(run: Any, jobs: Sequence[Job]) -> list[Execution]:
                claim = claims.pop()  # as many claims as instances, so one is left
                try:
                    self._acquire(claim)
                    try:
                        return execute(run, jobs)
                    finally:
                        self._release(claim)
                finally:
                    claims.append(claim)

            return execute_when_granted

        return limited

    def _acquire(self, claim: Claim) -> None:
        with self._changed:
            self._waiting.append(claim)
            self._serve()
            self._changed.wait_for(lambda: claim in self._running)

    def _release(self, claim: Claim) -> None:
        with self._changed:
            self._running.remove(claim)
            self._serve()

    def _serve(self) -> None:
        for claim in granted(self._waiting, self._free()):
            self._waiting.remove(claim)
            self._running.append(claim)
            claim.executions += 1
        self._changed.notify_all()

    def _free(self) -> dict[str, int]:
        free: dict[str, int] = {}
        for claim in self._claims:
            for name, count in claim.resources.items():
                free[name] = max(free.get(name, 0), self._sizes.get(name, count))
        for claim in self._running:
            for name, count in claim.resources.items():
                free[name] -= count
        return free
