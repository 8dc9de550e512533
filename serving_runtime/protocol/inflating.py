"""Decompression of requests, piece by piece: never beyond their limit, and large ones in a thread.

Decompression bombs are refused before they expand, and the event loop goes on with others meanwhile.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from serving_runtime.protocol.tensors.binary import Buffer

SMALL_BYTES = 1024
"""Content up to this size is inflated at once: it becomes a megabyte at most (zlib: 1032 times its size)."""

_INPUT_BYTES = 64 * 1024
_STEP_BYTES = 1024 * 1024
"""Output per step, after which the event loop continues."""

_thread = ThreadPoolExecutor(1, "inflate")
"""One: requests take turns in it by steps, and the loop keeps the other cores."""


class MalformedError(Exception):
    """Content is not in its declared compression; the message continues a sentence that begins with its name."""


class TooLargeError(Exception):
    """Content exceeds its limit once it is inflated."""


def inflate(content: Buffer, window_bits: int, most_bytes: int) -> bytes:
    """Return small content inflated; raises MalformedError and TooLargeError."""
    return b"".join(_pieces(content, window_bits, most_bytes))


async def inflate_in_thread(
    content: Buffer, window_bits: int, most_bytes: int, hold: Callable[[int], None]
) -> memoryview:
    """Return content inflated.

    Raises MalformedError and TooLargeError, and what `hold` raises.

    Args:
        hold: counts so many more bytes, on the event loop.
    """
    pieces = _pieces(content, window_bits, most_bytes)
    steps: list[bytes] = []
    loop = asyncio.get_running_loop()
    while step := await loop.run_in_executor(_thread, _step, pieces):
        hold(len(step))
        steps.append(step)
    return await loop.run_in_executor(_thread, _joined, steps)


def _joined(steps: list[bytes]) -> memoryview:
    """Return the steps as one, and empty the list; by numpy, which releases the GIL while it copies."""
    whole = np.empty(sum(map(len, steps)), np.uint8)
    end = len(whole)
    while steps:
        step = steps.pop()
        whole[end - len(step) : end] = np.frombuffer(step, np.uint8)
        end -= len(step)
    return whole.data


def _step(pieces: Iterator[bytes]) -> bytes:
    """Return the next pieces, joined; nothing at the end."""
    found: list[bytes] = []
    size = 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= _STEP_BYTES:
            break
    return b"".join(found)


def _pieces(content: Buffer, window_bits: int, most_bytes: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(window_bits)
    view = memoryview(content)
    size = 0
    for at in range(0, len(view), _INPUT_BYTES):
        part: Buffer = view[at : at + _INPUT_BYTES]
        while True:
            try:
                piece = inflater.decompress(part, _STEP_BYTES)
            except zlib.error as error:
                raise MalformedError(f"cannot be read: {error}") from error
            size += len(piece)
            if size > most_bytes:
                raise TooLargeError
            yield piece
            if inflater.unused_data or (inflater.eof and at + _INPUT_BYTES < len(view)):
                raise MalformedError("goes on after its compressed part")
            part = inflater.unconsumed_tail
            if not part and len(piece) < _STEP_BYTES:
                break
    if not inflater.eof:
        raise MalformedError("ends too early")
