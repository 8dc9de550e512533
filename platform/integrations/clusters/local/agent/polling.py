"""Waiting for what another process does, which tells nobody when it has done it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")


async def until(look: Callable[[], Awaitable[Found | None]], *, every_s: float, within_s: float) -> Found:
    """Return the first true thing that `look` finds; raises TimeoutError where there is none in time."""
    async with asyncio.timeout(within_s):
        while not (found := await look()):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(every_s)
        return found
