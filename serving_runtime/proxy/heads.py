"""Heads of HTTP/1.1 messages, checked and rewritten for the next hop (RFC 9112; RFC 9110, section 7.6). Pure.

A body has one length here: a valid Content-Length, chunks, or none. What could be read in two ways is refused, so that
gateway, proxy and container agree where a message ends (request smuggling).
"""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from serving_runtime.protocol import rows

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Names as sent, and values."""

MAX_HEAD_BYTES = 64 * 1024

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers of one hop, in lower case; length and coding are written by this hop."""

_NEVER_DROPPED = frozenset({b"host"})
"""Headers that a client cannot have removed by naming them in Connection."""

_OURS = (b"fairlead-", b"x-envoy-")
"""Prefixes of answers' headers by which the platform and its gateway speak; a container's own are dropped."""

_ROWS = rows.HEADER.encode()

_LENGTH = re.compile(rb"[0-9]{1,18}")
_ABSOLUTE = re.compile(rb"https?://([^/?#]+)([^#]*)", re.IGNORECASE)
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class BadMessage(ValueError):  # noqa: N818 - as those in errors.py
    """A message that cannot be passed on.

    Attributes:
        status: to refuse a request with.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class RequestHead(NamedTuple):
    """The head of a request.

    Attributes:
        target: in origin form.
        length: of the body in bytes; None for chunks.
        http_1_0: the client speaks HTTP/1.0, which lacks chunks.
        expects_continue: the client waits for 100 Continue before it sends the body.
    """

    method: bytes
    target: bytes
    headers: Headers
    length: int | None = 0
    http_1_0: bool = False
    expects_continue: bool = False


class AnswerHead(NamedTuple):
    """The head of the container's answer.

    Attributes:
        length: of the body in bytes; None where only chunks or the connection's end say.
    """

    status: int
    headers: Headers
    length: int | None


def request_head(method: bytes, target: bytes, headers: Headers, version: str, *, upgrades: bool) -> RequestHead:
    """Return a request's head; raises BadMessage."""
    if version not in ("1.0", "1.1"):
        raise BadMessage(f"HTTP/{version} is not served here; use HTTP/1.1", 505)
    if method == b"CONNECT":
        raise BadMessage("CONNECT is not served: this is no proxy for other hosts", 405)
    hosts = [value for name, value in headers if name.lower() == b"host"]
    if len(hosts) != 1 and (hosts or version == "1.1"):
        raise BadMessage(f"HTTP/{version} needs one Host header, not {len(hosts)}")
    if not target.startswith(b"/"):
        found = _ABSOLUTE.fullmatch(target)
        if found is None:
            raise BadMessage("the request target must be a path that begins with /")
        host, rest = found.groups()
        target = rest if rest.startswith(b"/") else b"/" + rest
        headers = [(name, host if name.lower() == b"host" else value) for name, value in headers]
    length = _body_length(headers)
    if version == "1.0" and length is None:
        raise BadMessage("HTTP/1.0 has no Transfer-Encoding; send a Content-Length")
    length = 0 if length == _NO_LENGTH else length
    if upgrades and length != 0:
        raise BadMessage("a request with a body cannot ask for another protocol; leave the Upgrade header out", 501)
    expectations = [value for name, value in headers if name.lower() == b"expect"]
    if any(value.lower() != b"100-continue" for value in expectations):
        raise BadMessage("the only expectation supported is 100-continue", 417)
    return RequestHead(method, target, headers, length, version == "1.0", bool(expectations))


def answer_head(status: int, headers: Headers, version: str) -> AnswerHead:
    """Return the head of an answer; raises BadMessage."""
    if version not in ("1.0", "1.1") or not 200 <= status <= 599:
        raise BadMessage(f"status {status} of HTTP/{version} is no answer")
    length = _body_length(headers)
    return AnswerHead(status, headers, None if length == _NO_LENGTH else length)


def request_lines(head: RequestHead, whole_bytes: int | None) -> bytes:
    """Return the head for the container; `whole_bytes` is the body's length where all of it is here."""
    length = head.length if whole_bytes is None else whole_bytes
    if length is None:
        ending = b"Transfer-Encoding: chunked\r\n\r\n"
    elif length or head.length is None or any(name.lower() == b"content-length" for name, _ in head.headers):
        ending = b"Content-Length: %d\r\n\r\n" % length
    else:
        ending = b"\r\n"
    return b"".join((head.method, b" ", head.target, b" HTTP/1.1\r\n", *_passed_on(head.headers), ending))


def answer_lines(head: AnswerHead, *, of_runtime: bool = False) -> bytes:
    """Return the headers of an answer for the client, without its length and the connection's.

    Args:
        of_runtime: the platform's own runtime answered, whose count of rows is passed on.
    """
    kept = [
        (name, value)
        for name, value in head.headers
        if not (lower := name.lower()).startswith(_OURS) or (of_runtime and lower == _ROWS)
    ]
    return b"".join(_passed_on(kept))


def status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, _PHRASES.get(status, b""))


_NO_LENGTH = -1


def _body_length(headers: Headers) -> int | None:
    """Return the length, None for chunks, `_NO_LENGTH` where the headers say nothing; raises BadMessage."""
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        if lengths:
            raise BadMessage("a message has either Content-Length or Transfer-Encoding, not both")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise BadMessage("the only Transfer-Encoding supported is chunked")
        return None
    if not lengths:
        return _NO_LENGTH
    if len(lengths) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise BadMessage("Content-Length must be one number of bytes")
    return int(lengths[0])


def _passed_on(headers: Headers) -> Iterable[bytes]:
    """Yield the lines of the headers that are not of this hop."""
    dropped = _HOP_BY_HOP
    for name, value in headers:
        if name.lower() == b"connection":
            dropped |= {word.strip().lower() for word in value.split(b",")} - _NEVER_DROPPED
    return [b"%b: %b\r\n" % (name, value) for name, value in headers if name.lower() not in dropped]
