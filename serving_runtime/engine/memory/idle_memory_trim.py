"""When a server that rests gives its free memory back: what a burst of requests took is not the server's for good.

glibc keeps up to 64 MB of freed memory (memory.py), of which more becomes resident whenever large requests come to lie
elsewhere than those before them. Beside a server that works this costs nothing; in one that rests it looks like a leak,
and other processes could use it.
"""

import time
from collections.abc import Callable

from serving_runtime.engine.memory.process_memory import give_back, resident_bytes

EVERY_S = 1.0
"""How often to look."""

QUIET_S = 5.0
"""For how long a server rests before it gives memory back."""

_WORK_S = 0.02
"""Of processor time between two looks: below this nothing but the server's own clocks ran."""

_WORTH_BYTES = 4 * 1024 * 1024
"""Less than this is not worth the page faults of the requests that come next."""


class Resting:
    """Follows the processor time and the memory of this process; `look` is called every `EVERY_S` seconds."""

    def __init__(
        self,
        cpu_s: Callable[[], float] = time.process_time,
        resident_bytes: Callable[[], int] = resident_bytes,
        give_back: Callable[[], None] = give_back,
    ) -> None:
        self._cpu_s = cpu_s
        self._resident_bytes = resident_bytes
        self._give_back = give_back
        self._used_s = cpu_s()
        self._least_bytes = resident_bytes()  # since memory was given back
        self._quiet_s = 0.0

    def look(self) -> None:
        """Give memory back where the process rests and has become larger since it last did."""
        before_s, self._used_s = self._used_s, self._cpu_s()
        self._quiet_s = self._quiet_s + EVERY_S if self._used_s - before_s < _WORK_S else 0.0
        if self._quiet_s < QUIET_S:
            return
        found_bytes = self._resident_bytes()
        self._least_bytes = min(self._least_bytes, found_bytes)
        if found_bytes - self._least_bytes > _WORTH_BYTES:
            self._give_back()
            self._least_bytes = self._resident_bytes()
