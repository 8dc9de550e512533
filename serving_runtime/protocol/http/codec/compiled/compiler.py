"""JIT compilation of the number reader, once a server has read enough JSON to pay for its memory and time.

It takes numba, which the extra `compiled-json` brings, 0.7 to 2 seconds of a core, in a thread beside the requests, and
about 150 MB of memory, half of them LLVM as a file. Servers with binary or few requests never compile it.
"""

import importlib.util
import logging
import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

Read = Callable[[bytes, int, int, int], NDArray[np.float32] | None]
"""`floats.read`: takes a text, start, end and the number of values."""

_WORTH_BYTES = 64 * 1024 * 1024


def _compiled() -> Read:
    from serving_runtime.protocol.http.codec.compiled import floats  # noqa: PLC0415 - compiles

    return floats.read


class Compiler:
    """Compiles the reader in a thread.

    Attributes:
        allowed: whether it may compile; set before the first request, by `--compiled-json`.
    """

    def __init__(self, compiled: Callable[[], Read] = _compiled, worth_bytes: int = _WORTH_BYTES) -> None:
        self.allowed = importlib.util.find_spec("numba") is not None
        self._compiled = compiled
        self._missing_bytes = worth_bytes
        self._read: Read | None = None
        self._begun = False

    def reader(self, text_bytes: int) -> Read | None:
        """Return the reader for a text of that size; None before it is compiled."""
        if self._read is None and self.allowed and not self._begun:
            self._missing_bytes -= text_bytes
            if self._missing_bytes <= 0:
                self._begun = True
                threading.Thread(target=self._compile, name="compiled-json").start()
        return self._read

    def _compile(self) -> None:
        began = time.monotonic()
        try:
            self._read = self._compiled()
        except Exception:  # any failure of numba: another reader exists
            logger.exception("the reader of JSON numbers could not be compiled; they are read as before")
        else:
            logger.info("JSON numbers are read by compiled code from now on (%.1f s)", time.monotonic() - began)
