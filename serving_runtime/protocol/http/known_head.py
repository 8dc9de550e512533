"""The head of the request before: one that comes again, byte for byte, is not parsed again.

A client that asks a model for the same shapes sends the same head with every request, and only the body is another.
"""

from typing import NamedTuple

from serving_runtime.protocol.http.message import Request

_KEPT_BYTES = 4096
"""Of a head; a connection keeps one."""


class KnownHead(NamedTuple):
    """A head, and what was found in it.

    Attributes:
        length: of a request with this head, in bytes.
        request: the one that it was found in.
    """

    head: bytes
    length: int
    request: Request

    def request_in(self, data: bytes) -> Request | None:
        """Return the request that `data` is, if it is one whole request with this head; it begins in `data`."""
        if len(data) != self.length or not data.startswith(self.head):
            return None
        known = self.request
        return Request(
            known.method,
            known.target,
            data,
            len(self.head),
            known.json_length,
            known.accept_encoding,
            known.headers,
        )


def learned(data: bytes, content_length: int, request: Request) -> KnownHead | None:
    """Return the head of the request that `data` began with, None where `data` is more than that one request.

    Args:
        content_length: as the head says it; the body has neither another length nor another coding.
    """
    end = len(data) - content_length
    if end > _KEPT_BYTES or data.find(b"\r\n\r\n") + 4 != end:
        return None
    return KnownHead(data[:end], len(data), request._replace(body=b""))
