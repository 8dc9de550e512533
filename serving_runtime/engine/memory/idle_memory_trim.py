"""Idle memory trim: returns unused heap memory to the OS after an idle period.

glibc keeps up to 64 MB of freed memory (process_memory.py), of which more becomes resident whenever large requests lie
elsewhere than earlier ones. In a busy server this costs nothing; in an idle one it looks like a leak, and other
processes could use it.
"""

import time
from collections.abc import Callable

from serving_runtime.engine.memory.process_memory import give_back, resident_bytes

EVERY_S = 1.0
"""Interval of checks."""

QUIET_S = 5.0
"""How long a server is idle before it returns memory."""

_WORK_S = 0.02
"""Processor time between two checks: below this nothing but the server's own timers ran."""

_WORTH_BYTES = 4 * 1024 * 1024
"""Less than this is not worth the page faults of the next requests."""


class IdleMemoryTrim:
    """Tracks the processor time and the memory of this process; `look` is called every `EVERY_S` seconds."""

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
        self._least_bytes = resident_bytes()  # since the last trim
        self._quiet_s = 0.0

    def look(self) -> None:
        """Trim where the process is idle and has grown since the last trim."""
        before_s, self._used_s = self._used_s, self._cpu_s()
        self._quiet_s = self._quiet_s + EVERY_S if self._used_s - before_s < _WORK_S else 0.0
        if self._quiet_s < QUIET_S:
            return
        found_bytes = self._resident_bytes()
        self._least_bytes = min(self._least_bytes, found_bytes)
        if found_bytes - self._least_bytes > _WORTH_BYTES:
            self._give_back()
            self._least_bytes = self._resident_bytes()
