"""Cache of HTTP request heads, per connection: a repeated head is not parsed again.

A client that requests the same shapes sends the same head each time, and only another body. Proxies and tracing add a
unique id to each request, and where bodies differ in length so do the length headers. So a head is recognized by the
bytes around the values of some headers, and these values are read from their positions:

    fixed | value | fixed | value | fixed

A value is on one line and has only characters without meaning to a parser. All else is fixed, byte for byte: the parser
would find the same headers, with these values. A head that differs otherwise goes to the parser.
"""

import re
from typing import NamedTuple

from serving_runtime.protocol.http.wire.message import Request

_KEPT = 4
"""Heads per connection: behind a proxy several clients share it."""

_KEPT_BYTES = 4096
"""Limit of one head."""

_LONGEST_VALUE = 128
_LONGEST_NUMBER = 15
_DIGITS = b"0123456789"
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.:,/+=@*" + _DIGITS

_LENGTH, _JSON_LENGTH = b"content-length", b"inference-header-content-length"
_IDS = frozenset({b"x-request-id", b"traceparent", b"tracestate"})
"""Headers whose values always differ; others are assumed fixed until two requests show otherwise."""

_ALLOWED = dict.fromkeys([*_IDS, b"x-forwarded-for", b"x-envoy-external-address"], _PLAIN)
_ALLOWED |= dict.fromkeys([_LENGTH, _JSON_LENGTH], _DIGITS)
"""The headers whose values may differ, and the allowed characters."""

_LINE = re.compile(
    rb"(?<=\r\n)(%b):[ \t]*([%b]{1,%d})(?=\r\n[^ \t])" % (b"|".join(_ALLOWED), re.escape(_PLAIN), _LONGEST_VALUE),
    re.IGNORECASE,
)
"""Such a header on a line of its own: the next line begins another header, or ends the head."""


class _Variable(NamedTuple):
    """The value of one header.

    Attributes:
        before: the fixed bytes before the value.
        allowed: its characters.
        is_length: whether it is the body's length; any other number is the JSON's length.
        header: the header's index among those that the application keeps, -1 for others.
    """

    before: bytes
    allowed: bytes
    is_length: bool
    header: int


class _KnownHead(NamedTuple):
    """A known head, and its parsed form.

    Attributes:
        variables: in their order.
        rest: the fixed bytes after the last one.
        content_length: of its original request, in bytes.
        most_bytes: limit of the body of another request with this head.
        request: the original one, without its body.
    """

    variables: tuple[_Variable, ...]
    rest: bytes
    content_length: int
    most_bytes: int
    request: Request

    def request_in(self, data: bytes) -> Request | None:
        """Return the request in `data`, if that is one whole request with this head; its views begin in `data`."""
        at, content_length, known = 0, self.content_length, self.request
        headers, json_length = known.headers, known.json_length
        for before, allowed, is_length, header in self.variables:
            if not data.startswith(before, at):
                return None
            at += len(before)
            end = data.find(b"\r", at, at + _LONGEST_VALUE + 1)
            if end <= at or (value := data[at:end]).translate(None, allowed):
                return None
            at = end
            if allowed is _DIGITS:
                number = int(value) if len(value) <= _LONGEST_NUMBER else -1
                if is_length:
                    content_length = number
                else:
                    json_length = number
            if header >= 0:
                headers = (*headers[:header], (headers[header][0], value), *headers[header + 1 :])
        if not data.startswith(self.rest, at):
            return None
        at += len(self.rest)
        if len(data) - at != content_length or content_length > self.most_bytes or json_length == -1:
            return None
        return Request(
            known.method, known.target, data, at, json_length, known.accept_encoding, headers, False, None,
            known.caller, known.caller_limit,
        )  # fmt: skip


class KnownHeads:
    """The heads of one connection.

    Args:
        most_bytes: limit of the body of a request that is read without a check for room.
    """

    __slots__ = ("_differing", "_known", "_last", "_most_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._known: list[_KnownHead] = []
        self._last: dict[bytes, bytes] = {}
        self._differing = _IDS

    def clear(self) -> None:
        self._known.clear()

    def request_in(self, data: bytes) -> Request | None:
        """Return the request in `data`, if that is one whole request with a known head; its views begin in `data`."""
        for known in self._known:
            request = known.request_in(data)
            if request is not None:
                return request
        return None

    def learn(self, data: bytes, content_length: int, request: Request) -> None:
        """Keep the head of the request in `data`; not where `data` is more than that one request.

        Args:
            content_length: from the head; the body has neither another length nor another coding.
        """
        end = len(data) - content_length
        if end > _KEPT_BYTES or data.find(b"\r\n\r\n") + 4 != end:
            return
        head = data[:end]
        values = {line[1].lower(): line[2] for line in _LINE.finditer(head)}
        self._differing |= {name for name, value in values.items() if self._last.get(name, value) != value}
        self._last = values
        variables, rest = _variables(head, self._differing, request)
        most_bytes = max(content_length, self._most_bytes)
        self._known.insert(0, _KnownHead(variables, rest, content_length, most_bytes, request._replace(body=b"")))
        del self._known[_KEPT:]


def _variables(head: bytes, differing: frozenset[bytes], request: Request) -> tuple[tuple[_Variable, ...], bytes]:
    """Return the variables of a parsed head, and the bytes after the last of them."""
    found, at, lines = [], 0, head.lower()
    wanted = [name.lower() for name, _ in request.headers]
    for line in _LINE.finditer(head):
        name = line[1].lower()
        allowed = _ALLOWED[name]
        if name not in differing or line[2].translate(None, allowed) or lines.count(b"\n" + name) > 1:
            continue
        header = wanted.index(name) if name in wanted else -1
        found.append(_Variable(head[at : line.start(2)], allowed, name == _LENGTH, header))
        at = line.end(2)
    return tuple(found), head[at:]
