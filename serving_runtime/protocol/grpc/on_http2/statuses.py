"""gRPC statuses in headers and trailers, encoded in advance where they never change."""

import functools
from collections.abc import Sequence

from serving_runtime.protocol.http2.headers.blocks import encode
from serving_runtime.protocol.rows import HEADER

CODES = {
    "OK": 0,
    "CANCELLED": 1,
    "UNKNOWN": 2,
    "INVALID_ARGUMENT": 3,
    "DEADLINE_EXCEEDED": 4,
    "NOT_FOUND": 5,
    "ALREADY_EXISTS": 6,
    "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8,
    "UNIMPLEMENTED": 12,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
}
"""Numbers of the gRPC statuses, of those of errors (common.statuses) and those of calls alone."""

_MOST_MESSAGE_BYTES = 4096
"""Limit of an encoded message: clients refuse metadata that is much larger."""

_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}

_ROWS = HEADER.encode()
_HEADERS = ((b":status", b"200"), (b"content-type", b"application/grpc"))


@functools.lru_cache(maxsize=1024)
def ok(rows: int) -> bytes:
    """Return the trailers of a call that succeeded, with the rows of its requests; 0 for a call that does not infer."""
    found = ((_ROWS, b"%d" % rows),) if rows else ()
    return encode(((b"grpc-status", b"0"), *found))


class Beginnings:
    """The headers that begin answers.

    Attributes:
        plain: for uncompressed messages; with trailers in the same block where there is no message.
        of_coding: for compressed messages.
    """

    def __init__(self, metadata: Sequence[tuple[str, str]] = ()) -> None:
        """Take metadata of all answers."""
        fields = (*_HEADERS, *((key.encode(), value.encode()) for key, value in metadata))
        self.plain = encode(fields)
        self.of_coding = {
            coding: encode((*fields, (b"grpc-encoding", coding.encode()))) for coding in ("gzip", "deflate")
        }


def trailers(code: str, message: str) -> bytes:
    """Return the trailers of a call that failed."""
    return encode([(b"grpc-status", b"%d" % CODES[code]), (b"grpc-message", percent_encoded(message))])


def refusal(status: int, content_type: bytes = b"text/plain; charset=utf-8") -> bytes:
    """Return the headers of an answer to a request that is not gRPC."""
    return encode([(b":status", b"%d" % status), (b"content-type", content_type)])


def percent_encoded(message: str) -> bytes:
    """Return a message in the form of `grpc-message` (gRPC: Percent-Encoded), cut where it is very long."""
    found = bytearray()
    for character in message:
        content = character.encode("utf-8", "replace")
        piece = b"".join(bytes((byte,)) if byte in _PLAIN else b"%%%02X" % byte for byte in content)
        if len(found) + len(piece) > _MOST_MESSAGE_BYTES:
            break
        found += piece
    return bytes(found)
