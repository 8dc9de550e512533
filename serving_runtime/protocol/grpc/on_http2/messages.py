"""gRPC message framing (gRPC: Length-Prefixed-Message): five-byte prefix, reassembly, compression."""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import NamedTuple

from serving_runtime.common.errors import ErrorKind, InvalidArgument, ServingError, Unsupported
from serving_runtime.protocol import inflating

PREFIX_BYTES = 5
CODINGS = ("identity", "gzip", "deflate")

_WINDOW_BITS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_IN_THREAD_BYTES = 64 * 1024
"""Messages of at least this size are compressed in a thread: the loop serves others meanwhile."""


class TooLarge(ServingError):  # noqa: N818 - the words of the protocol
    """A message above the limit."""

    kind = ErrorKind.EXHAUSTED


class Message(NamedTuple):
    """One message as received.

    Attributes:
        compressed: by the call's grpc-encoding.
        size_bytes: as received, with its prefix.
    """

    compressed: bool
    content: memoryview
    size_bytes: int


def whole(content: bytes, max_message_bytes: int) -> Message | None:
    """Return the message that fills a piece exactly; None for any other piece, also an invalid one."""
    size = len(content) - PREFIX_BYTES
    if not 0 <= size <= max_message_bytes or content[0] > 1 or int.from_bytes(content[1:PREFIX_BYTES], "big") != size:
        return None
    return Message(content[0] == 1, memoryview(content)[PREFIX_BYTES:], len(content))


class Assembly:
    """Assembles the messages of one direction of a call.

    Attributes:
        held_bytes: received bytes of the incomplete message.
    """

    __slots__ = ("_awaited_bytes", "_max_message_bytes", "_pieces", "held_bytes")

    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._pieces: list[bytes] = []
        self._awaited_bytes = PREFIX_BYTES
        self.held_bytes = 0

    @property
    def needed_bytes(self) -> int:
        """Return how much the incomplete message still needs, as far as that is known."""
        return self._awaited_bytes - self.held_bytes

    def feed(self, content: bytes) -> list[Message]:
        """Return the messages that a piece completes; raises ServingError for one that is too large or invalid."""
        self.held_bytes += len(content)
        if self._pieces:
            self._pieces.append(content)
            if self.held_bytes < self._awaited_bytes:
                return []
            content = b"".join(self._pieces)
        found = []
        at, end = 0, len(content)
        self._awaited_bytes = PREFIX_BYTES
        while end - at >= PREFIX_BYTES:
            size = self._checked_size(content[at : at + PREFIX_BYTES])
            after = at + PREFIX_BYTES + size
            if after > end:
                self._awaited_bytes = PREFIX_BYTES + size
                break
            whole = memoryview(content)[at + PREFIX_BYTES : after]  # spares large ones another copy
            found.append(Message(content[at] == 1, whole, PREFIX_BYTES + size))
            at = after
        self._pieces = [content[at:]] if at < end else []
        self.held_bytes = end - at
        return found

    def _checked_size(self, prefix: bytes) -> int:
        size = int.from_bytes(prefix[1:], "big")
        if prefix[0] > 1:
            raise InvalidArgument(f"a message begins with {prefix[0]}, neither 0 nor 1 for whether it is compressed")
        if size > self._max_message_bytes:
            raise TooLarge(f"the request is larger than max ({size} vs. {self._max_message_bytes} bytes)")
        return size


def prefixed(content: bytes, *, compressed: bool = False) -> bytes:
    return (b"\x01" if compressed else b"\x00") + len(content).to_bytes(4, "big") + content


async def decompress(message: Message, coding: str, max_message_bytes: int, hold: Callable[[int], None]) -> memoryview:
    """Return a message's content; raises ServingError where it is malformed or too large.

    Args:
        hold: counts so many more bytes for the call; raises ServingError where there is no room for them.
    """
    if not message.compressed:
        return message.content
    if coding not in _WINDOW_BITS:
        raise InvalidArgument("a message says that it is compressed, but the call has no grpc-encoding")
    bits = _WINDOW_BITS[coding]
    try:
        if len(message.content) > inflating.SMALL_BYTES:
            return await inflating.inflate_in_thread(message.content, bits, max_message_bytes, hold)
        content = inflating.inflate(message.content, bits, max_message_bytes)
    except inflating.TooLargeError as error:
        raise TooLarge(f"the decompressed request is larger than max ({max_message_bytes} bytes)") from error
    except inflating.MalformedError as error:
        raise InvalidArgument(f"a message is no whole {coding}: it {error}") from error
    hold(len(content))
    return memoryview(content)


async def compressed(content: bytes, coding: str, level: int) -> bytes:
    """Return the message with its prefix, compressed where that makes it smaller."""
    if len(content) < _IN_THREAD_BYTES:
        packed = _compressed(content, coding, level)
    else:
        packed = await asyncio.to_thread(_compressed, content, coding, level)
    return prefixed(packed, compressed=True) if len(packed) < len(content) else prefixed(content)


def _compressed(content: bytes, coding: str, level: int) -> bytes:
    return gzip.compress(content, level, mtime=0) if coding == "gzip" else zlib.compress(content, level)


def check_coding(coding: str) -> None:
    """Raise Unsupported for an unknown grpc-encoding."""
    if coding not in CODINGS:
        raise Unsupported(f"grpc-encoding '{coding}' is not one of {', '.join(CODINGS)}")
