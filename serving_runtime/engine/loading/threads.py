"""Thread pool for loads, which block on disks, networks and libraries."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class LoadThreads:
    """At most `count` threads at a time (Triton: --model-load-thread-count).

    Daemon threads, unlike an executor's: a load that never ends must not keep the process from ending.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return the function's result from a thread, or raise its exception."""
        async with self._free:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()

            def finish(result: T | None, error: BaseException | None) -> None:
                if done.cancelled():
                    return
                if error is not None:
                    done.set_exception(error)
                else:
                    done.set_result(result)  # type: ignore[arg-type]

            def work() -> None:
                result, error = None, None
                try:
                    result = function(*arguments)
                except BaseException as raised:  # passed to the waiting coroutine
                    error = raised
                if not loop.is_closed():
                    loop.call_soon_threadsafe(finish, result, error)

            threading.Thread(target=work, name="model-load", daemon=True).start()
            return await done
