"""Rows header: how many rows a request had, its batch dimension, or 1 for models that do not batch.

A gateway counts usage by it. Over gRPC it is among the trailers; for a stream, the sum of its answered requests.
"""

import functools
from contextvars import ContextVar

HEADER = "fairlead-rows"
HEADER_LINE = f"{HEADER}: %d\r\n".encode()

CALL: ContextVar[int] = ContextVar("ROWS_OF_CALL", default=0)
"""Rows of the gRPC call whose coroutine runs; 0 where it does not infer."""


@functools.lru_cache(maxsize=1024)
def header_line(rows: int) -> bytes:
    """Return the line of an HTTP answer's head."""
    return HEADER_LINE % rows
