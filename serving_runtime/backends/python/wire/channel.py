"""Message framing between the server and a worker: a JSON object and tensors.

    frame: header length, payload length (four bytes each, little-endian) | header | small tensors
    header: the message, with `tensors` (name, datatype, shape, bytes, where), `region` and `freed` added

Small tensors are in the frame; the others are in one region of shared memory, whose start and size the header names.
"""

import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from serving_runtime.backends.python.wire.arena import ALIGNMENT, Arena, Window
from serving_runtime.backends.python.wire.packing import packed, unpacked
from serving_runtime.common.request import Tensor

_LENGTHS = struct.Struct("<II")
_INLINE_BYTES = 4096
_INLINE = -1


class ChannelClosedError(Exception):
    """The other side has gone."""


class Channel:
    """One end of a connection. Any thread may send, one receives.

    Args:
        outgoing, incoming: file descriptors of memory; this object owns them and the socket from now on.
    """

    def __init__(self, connection: socket.socket, outgoing: int, incoming: int) -> None:
        self._socket = connection
        self._arena = Arena(outgoing)
        self._window = Window(incoming)
        self._sending = threading.Lock()

    def send(self, message: dict[str, Any], tensors: Sequence[Tensor] = ()) -> None:
        """Send a message; raises ChannelClosedError. The arrays may be changed as soon as this returns."""
        contents = [packed(tensor) for tensor in tensors]
        placed = [one for one in contents if one.content.size > _INLINE_BYTES]
        inline = [one.content for one in contents if one.content.size <= _INLINE_BYTES]
        header = dict(message)
        if placed:
            header["region"] = self._place(placed)
        if contents:
            header["tensors"] = [[*one.described, *([_INLINE] if len(one.described) == 4 else [])] for one in contents]
        payload = b"".join([content.tobytes().ljust(_padded(content.size), b"\0") for content in inline])
        with self._sending:
            freed = self._window.released
            if freed:
                header["freed"] = [freed.popleft() for _ in range(len(freed))]
            encoded = orjson.dumps(header)
            try:
                self._socket.sendall(_LENGTHS.pack(len(encoded), len(payload)) + encoded + payload)
            except OSError as error:
                raise ChannelClosedError(str(error)) from error

    def receive(self) -> tuple[dict[str, Any], list[Tensor]]:
        """Return the next message and its tensors, which are views; raises ChannelClosedError at the end."""
        header_length, payload_length = _LENGTHS.unpack(self._exactly(_LENGTHS.size))
        header = orjson.loads(self._exactly(header_length))
        payload = np.frombuffer(self._exactly(payload_length), np.uint8)
        for start in header.pop("freed", ()):
            self._arena.free(start)
        region = header.pop("region", None)
        shared = self._window.view(*region) if region is not None else payload
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
            self._arena.close()
            self._window.close()

    def _place(self, contents: Sequence[Any]) -> tuple[int, int]:
        """Write contents into one region and record each one's offset in its description; returns the region."""
        offsets = []
        total = 0
        for one in contents:
            offsets.append(total)
            total += -(-one.content.size // ALIGNMENT) * ALIGNMENT
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


def _padded(size: int) -> int:
    """Return the padded size of small content in a frame, so that the next content is aligned for any datatype."""
    return -(-size // 8) * 8
