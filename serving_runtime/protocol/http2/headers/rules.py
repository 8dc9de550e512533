"""Header field rules for requests (RFC 9113, section 8). Pure."""

import re

from serving_runtime.protocol.http2.frames import ErrorCode, StreamFailure
from serving_runtime.protocol.http2.headers.fields import Field, Fields

_REQUEST = frozenset({b":method", b":scheme", b":path", b":authority"})
_REQUIRED = frozenset({b":method", b":scheme", b":path"})
_OF_HTTP_1 = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"[^\x00\r\n]*")

_KEPT_FIELDS = 256
_KEPT_FIELD_BYTES = 256


def check_request(fields: Fields, checked: set[Field] | None = None) -> int | None:
    """Return a request's content-length, None without one; raises StreamFailure for invalid fields.

    RFC 9113, section 8.3.1.

    Args:
        checked: regular fields found valid, to which others are added; never content-length.
    """
    checked = set() if checked is None else checked
    found: set[bytes] = set()
    regular = False
    content_length = None
    for name, value in fields:
        if name[:1] != b":":
            regular = True
            if (name, value) in checked:
                continue
            check_field(name, value)
            if name == b"content-length":
                if content_length not in (None, content_length_in(value)):
                    raise _malformed("there are two content-lengths")
                content_length = content_length_in(value)
            elif len(name) + len(value) <= _KEPT_FIELD_BYTES:
                if len(checked) >= _KEPT_FIELDS:
                    checked.clear()
                checked.add((name, value))
            continue
        if regular:
            raise _malformed("a pseudo-header field follows a regular one")
        if name not in _REQUEST:
            raise _malformed("a pseudo-header field is unknown")
        if name in found:
            raise _malformed("a pseudo-header field is there twice")
        if name == b":path" and not value:
            raise _malformed(":path is empty")
        found.add(name)
    if not found >= _REQUIRED:
        raise _malformed("one of :method, :scheme and :path is missing")
    return content_length


def check_trailers(fields: Fields) -> None:
    """Raise StreamFailure unless the fields are valid trailers."""
    for name, value in fields:
        if name[:1] == b":":
            raise _malformed("trailers have a pseudo-header field")
        check_field(name, value)


def check_field(name: bytes, value: bytes) -> None:
    """Raise StreamFailure unless a regular field is valid."""
    if _NAME.fullmatch(name) is None:
        raise _malformed("a header's name is empty, in upper case or no token")
    if name in _OF_HTTP_1:
        raise _malformed(f"{name.decode('latin-1')} has no place in HTTP/2")
    check_value(name, value)


def check_value(name: bytes, value: bytes) -> None:
    """Raise StreamFailure unless a value is valid for a regular field of a valid name."""
    if _VALUE.fullmatch(value) is None:
        raise _malformed("a header's value has a line break or a zero byte")
    if name == b"te" and value != b"trailers":
        raise _malformed("te has no place in HTTP/2")


def content_length_in(value: bytes) -> int:
    """Return a content-length in bytes; raises StreamFailure."""
    if not value.isdigit() or len(value) > 18:
        raise _malformed("content-length is no number")
    return int(value)


def _malformed(message: str) -> StreamFailure:
    return StreamFailure(ErrorCode.PROTOCOL_ERROR, message)
