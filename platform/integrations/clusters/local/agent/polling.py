"""Polling for changes by other processes, which send no notification."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")


async def until(look: Callable[[], Awaitable[Found | None]], *, every_s: float, within_s: float) -> Found:
    """Return the first true value of `look`; raises TimeoutError where none comes in time."""
    async with asyncio.timeout(within_s):
        while not (found := await look()):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(every_s)
        return found
