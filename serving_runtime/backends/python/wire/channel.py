"""Message framing between the server and a worker: a JSON object and tensors.

    frame: header length, payload length (four bytes each, little-endian) | header | small tensors
    header: the message, with `tensors` (name, datatype, shape, bytes, where), `region` and `freed` added

Small tensors are in the frame; the others are in one region of shared memory, whose start and size the header names.
Without shared memory all are in the frame: a sandboxed worker could otherwise change or remove what the server reads.
"""

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from serving_runtime.backends.python.wire import untrusted
from serving_runtime.backends.python.wire.arena import ALIGNMENT, Arena, Window
from serving_runtime.backends.python.wire.packing import packed, unpacked
from serving_runtime.backends.python.wire.untrusted import MalformedMessageError
from serving_runtime.common.request import Tensor

_LENGTHS = struct.Struct("<II")
_INLINE_BYTES = 4096
_INLINE = -1
_NO_LIMIT = 1 << 62
_MAX_PAYLOAD = (1 << 32) - 1
_PIECE_BYTES = 1 << 20


class ChannelClosedError(Exception):
    """The other side has gone."""


class Channel:
    """One end of a connection. Any thread may send, one receives.

    Args:
        memory: outgoing and incoming file descriptors of memory; None sends all by the socket. This object owns them
            and the socket from now on.
        trusted: whether the other side sends nothing but messages; else each one is checked.

    Attributes:
        awaits_tensors: returns whether a side that is not trusted may send tensors now.
        header_bytes: of the last message from a side that is not trusted.
    """

    def __init__(self, connection: socket.socket, memory: tuple[int, int] | None, *, trusted: bool = True) -> None:
        self._socket = connection
        self._arena = Arena(memory[0]) if memory is not None else None
        self._window = Window(memory[1]) if memory is not None else None
        self._inline_bytes = _INLINE_BYTES if memory is not None else _NO_LIMIT
        self._trusted = trusted
        self.awaits_tensors: Callable[[], bool] = lambda: True
        self.header_bytes = 0
        self._sending = threading.Lock()

    def send(self, message: dict[str, Any], tensors: Sequence[Tensor] = ()) -> None:
        """Send a message; raises ChannelClosedError. The arrays may be changed as soon as this returns."""
        contents = [packed(tensor) for tensor in tensors]
        placed = [one for one in contents if one.content.size > self._inline_bytes]
        inline = [one.content for one in contents if one.content.size <= self._inline_bytes]
        header = dict(message)
        if placed:
            header["region"] = self._place(placed)
        if contents:
            header["tensors"] = [[*one.described, *([_INLINE] if len(one.described) == 4 else [])] for one in contents]
        payload = b"".join([content.tobytes().ljust(_padded(content.size), b"\0") for content in inline])
        with self._sending:
            freed = self._window.released if self._window is not None else None
            if freed:
                header["freed"] = [freed.popleft() for _ in range(len(freed))]
            encoded = orjson.dumps(header)
            if len(payload) > _MAX_PAYLOAD:
                raise ChannelClosedError(f"{len(payload)} bytes are more than a message has")
            try:
                self._socket.sendall(_LENGTHS.pack(len(encoded), len(payload)) + encoded + payload)
            except OSError as error:
                raise ChannelClosedError(str(error)) from error

    def receive(self) -> tuple[dict[str, Any], list[Tensor]]:
        """Return the next message and its tensors, which are views.

        Raises:
            ChannelClosedError: at the end.
            MalformedMessageError: the other side, which is not trusted, sent something else.
        """
        header_length, payload_length = _LENGTHS.unpack(self._exactly(_LENGTHS.size))
        if not self._trusted:
            return self._checked(header_length, payload_length)
        header = orjson.loads(self._exactly(header_length))
        payload = np.frombuffer(self._exactly(payload_length), np.uint8)
        for start in header.pop("freed", ()):
            if self._arena is not None:
                self._arena.free(start)
        region = header.pop("region", None)
        shared = self._window.view(*region) if region is not None and self._window is not None else payload
        tensors = []
        position = 0
        for *described, where in header.pop("tensors", ()):
            size = described[-1]
            if where == _INLINE:
                content = payload[position : position + size]
                position += _padded(size)
            else:
                content = shared[where : where + size]
            tensors.append(unpacked(described, content))
        return header, tensors

    def _checked(self, header_length: int, payload_length: int) -> tuple[dict[str, Any], list[Tensor]]:
        if header_length > untrusted.MAX_HEADER_BYTES or payload_length > untrusted.MAX_PAYLOAD_BYTES:
            raise MalformedMessageError(f"a message of {header_length + payload_length} bytes")
        if payload_length and not self.awaits_tensors():
            raise MalformedMessageError("tensors without a request")
        self.header_bytes = header_length
        try:
            header = orjson.loads(self._exactly(header_length))
        except orjson.JSONDecodeError as error:
            raise MalformedMessageError("a message that is no JSON") from error
        payload = np.frombuffer(self._in_pieces(payload_length), np.uint8)
        described = header.pop("tensors", []) if isinstance(header, dict) else []
        tensors = untrusted.tensors_in(described, payload)
        untrusted.check(header, tensors)
        return header, tensors

    def shut(self) -> None:
        """Close the connection: the receivers on both sides are woken."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other side closed first
            return

    def close(self) -> None:
        """Release everything; neither side may send or receive afterwards. Received arrays stay valid."""
        self._socket.close()
        with self._sending:
            if self._arena is not None and self._window is not None:
                self._arena.close()
                self._window.close()

    def _place(self, contents: Sequence[Any]) -> tuple[int, int]:
        """Write contents into one region and record each one's offset in its description; returns the region."""
        offsets = []
        total = 0
        for one in contents:
            offsets.append(total)
            total += -(-one.content.size // ALIGNMENT) * ALIGNMENT
        assert self._arena is not None, "without memory all is inline"  # noqa: S101
        start, region = self._arena.place(total)
        target = np.frombuffer(region, np.uint8)
        for one, offset in zip(contents, offsets, strict=True):
            target[offset : offset + one.content.size] = one.content
            one.described.append(offset)
        return start, total

    def _exactly(self, size: int) -> bytearray:
        content = bytearray(size)
        view = memoryview(content)
        while view:
            try:
                count = self._socket.recv_into(view)
            except OSError as error:
                raise ChannelClosedError(str(error)) from error
            if not count:
                raise ChannelClosedError("the other side has closed the connection")
            view = view[count:]
        return content

    def _in_pieces(self, size: int) -> bytearray:
        """Return so many bytes; takes memory only for those that came."""
        content = bytearray()
        while len(content) < size:
            content += self._exactly(min(size - len(content), _PIECE_BYTES))
        return content


def _padded(size: int) -> int:
    """Return the padded size of small content in a frame, so that the next content is aligned for any datatype."""
    return -(-size // 8) * 8
