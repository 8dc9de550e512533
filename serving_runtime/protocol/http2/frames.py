"""HTTP/2 frames: encoding, decoding and their errors (RFC 9113, sections 4, 6 and 7). Pure.

Http2Error            never raised itself
|-- ConnectionFailure ends the connection: nothing that follows can be trusted
`-- StreamFailure     ends one stream; the others go on
"""

import enum
import struct
from collections.abc import Mapping

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

DEFAULT_TABLE_BYTES = 4096
DEFAULT_WINDOW_BYTES = 65_535
MAX_WINDOW_BYTES = 2**31 - 1
SMALLEST_MAX_FRAME_BYTES = 2**14
LARGEST_MAX_FRAME_BYTES = 2**24 - 1
LAST_STREAM_ID = 2**31 - 1

HEAD = struct.Struct(">BHBBI")
"""Length in two parts (its upper byte, the rest), kind, flags, stream id with a reserved bit."""
HEAD_BYTES = HEAD.size

PRIORITY_BYTES = 5

_SETTING = struct.Struct(">HI")


class ErrorCode(enum.IntEnum):
    """Why a stream or a connection ends (RFC 9113, section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Http2Error(Exception):
    """Protocol error of a client.

    Attributes:
        code: sent to the client.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionFailure(Http2Error):  # noqa: N818 - the words of the protocol, as in serving_runtime.common.errors
    """Ends the connection."""


class StreamFailure(Http2Error):  # noqa: N818
    """Ends one stream."""


def head(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    """Return the nine bytes before a frame's payload."""
    return HEAD.pack(length >> 16, length & 0xFFFF, kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return head(len(payload), kind, flags, stream_id) + payload


def settings(values: Mapping[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(name, value) for name, value in values.items()))


def window_update(stream_id: int, increment_bytes: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, increment_bytes.to_bytes(4, "big"))


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream_id, code.to_bytes(4, "big"))


def goaway(last_stream_id: int, code: ErrorCode, message: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, struct.pack(">II", last_stream_id, code) + message.encode())


def read_settings(payload: bytes) -> dict[int, int]:
    """Return the last value of each setting in a frame, but the lowest table size, which is the one that an encoder
    has to honour (RFC 7541, section 4.2); raises ConnectionFailure for invalid values."""
    if len(payload) % _SETTING.size:
        raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS is no multiple of 6 bytes")
    found: dict[int, int] = {}
    for name, value in _SETTING.iter_unpack(payload):
        if name == ENABLE_PUSH and value > 1:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is neither 0 nor 1")
        if name == INITIAL_WINDOW_SIZE and value > MAX_WINDOW_BYTES:
            raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE is above 2^31-1")
        if name == MAX_FRAME_SIZE and not SMALLEST_MAX_FRAME_BYTES <= value <= LARGEST_MAX_FRAME_BYTES:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is not from 2^14 to 2^24-1")
        found[name] = min(value, found.get(name, value)) if name == HEADER_TABLE_SIZE else value
    return found


def unpadded(flags: int, payload: bytes) -> bytes:
    """Return the payload without its padding; raises ConnectionFailure for more padding than payload."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a frame has more padding than payload")
    return payload[1 : len(payload) - payload[0]]


def depends_on(priority: bytes) -> int:
    """Return the stream that a priority depends on."""
    return int.from_bytes(priority[:4], "big") & LAST_STREAM_ID
