"""Memory admission of loads: claims memory, unloads idle models where allowed, settles, releases it with the model."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from serving_runtime.engine.memory.budget import Budget, Claim, Idle, victims
from serving_runtime.engine.memory.least_recently_used import LeastRecentlyUsed

logger = logging.getLogger(__name__)

_LOOK_S = 0.01
"""Interval of checks whether a busy model has become idle."""


class Unused(NamedTuple):
    """An idle loaded model, and its versions in memory."""

    name: str
    last_used_ms: int
    opened: tuple[Any, ...]


class Admission:
    """Holders of the budget. Lives on the event loop.

    Args:
        unused: returns the idle models.
        unload: unloads one, and returns when its memory is released; None where idle models stay loaded.
        patience_s: how long to wait for busy models to become idle, where that would help.
        order: of the models to unload; None for that of `unused`, which checks every model.
    """

    def __init__(
        self,
        budget: Budget,
        unused: Callable[[], Iterable[Unused]],
        unload: Callable[[str], Awaitable[None]] | None,
        patience_s: float,
        order: LeastRecentlyUsed | None = None,
    ) -> None:
        self._order = order
        self.budget = budget
        self._unused = unused
        self._unload = unload
        self._patience_s = patience_s
        self._one_at_a_time = asyncio.Lock()
        self._held: dict[int, Claim] = {}  # by id of the opened model

    async def claim(self, name: str, needs: Mapping[int, int]) -> dict[int, Claim]:
        """Return a claim for each version's bytes; raises NoRoom when not all of them fit."""
        async with self._one_at_a_time:
            await self._make_room(name, sum(needs.values()))
            return {version: self.budget.claim(name, need) for version, need in needs.items()}

    def release(self, claims: Iterable[Claim]) -> None:
        """Release the claims of a load that failed."""
        for claim in claims:
            self.budget.release(claim)

    def settle(self, claim: Claim, opened: Any, size_bytes: int) -> None:
        """Set a model's claim to its measured memory, whether or not that fits."""
        claim.size_bytes = size_bytes
        self._held[id(opened)] = claim

    async def check(self, name: str, own_bytes: int) -> None:
        """Make room for the measured memory of models; raises NoRoom where that is impossible.

        Args:
            own_bytes: of the model that was measured; more than all may take is refused without a wait.
        """
        if not self.budget.could_fit(own_bytes):
            raise self.budget.refusal(name, own_bytes)
        async with self._one_at_a_time:
            await self._make_room(name, 0)

    def size_bytes(self, opened: Any) -> int:
        """Return the memory that a model holds."""
        claim = self._held.get(id(opened))
        return claim.size_bytes if claim is not None else 0

    def freed(self, opened: Any) -> None:
        """Release the claim of a model that is out of memory now."""
        claim = self._held.pop(id(opened), None)
        if claim is not None:
            self.budget.release(claim)

    async def _make_room(self, name: str, need_bytes: int) -> None:
        stop = time.monotonic() + self._patience_s
        while (lacking := self.budget.lacking(need_bytes)) > 0:
            chosen = self._victim(lacking, need_bytes) if self._unload is not None else None
            if self._unload is not None and chosen is not None:
                # one at a time: meanwhile another may get requests, or be reloaded and wait for memory itself
                logger.info("unloading idle model '%s' to make room for '%s'", chosen, name)
                await self._unload(chosen)
            elif self._unload is None or not self.budget.could_fit(need_bytes) or time.monotonic() > stop:
                raise self.budget.refusal(name, need_bytes)
            else:
                await asyncio.sleep(_LOOK_S)

    def _victim(self, lacking_bytes: int, need_bytes: int) -> str | None:
        """Return the model to unload next; None where unloading does not make room now."""
        if self._order is not None:
            return self._order.first() if self.budget.could_fit(need_bytes) else None
        chosen = victims(lacking_bytes, self._idle())
        return chosen[0] if chosen else None

    def _idle(self) -> Iterator[Idle]:
        for unused in self._unused():
            yield Idle(unused.last_used_ms, sum(map(self.size_bytes, unused.opened)), unused.name)
