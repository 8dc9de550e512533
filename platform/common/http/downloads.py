"""Streaming downloads with range requests, under ASGI as well as under WSGI and in tests."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import NamedTuple, Self

from asgiref.sync import sync_to_async
from django.http import HttpResponse, StreamingHttpResponse

_ONE_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")


class Asked(NamedTuple):
    """The Range and If-Range headers of a request; both may be empty."""

    range: str
    if_range: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Return a request's headers."""
        return cls(headers.get("Range", ""), headers.get("If-Range", ""))


class Span(NamedTuple):
    """A byte range, end included."""

    first: int
    last: int


class Attachment(StreamingHttpResponse):
    """A file to be saved under `filename`, which must be plain ASCII without quotes.

    Django would read a synchronous iterator to its end, into memory, before it sends the first byte under ASGI. Here
    one piece is made at a time, in a thread, when the client has taken the one before.
    """

    def __init__(self, pieces: Iterator[bytes], *, filename: str, content_type: str) -> None:
        super().__init__(pieces, content_type=content_type)
        self.headers["Content-Disposition"] = f'attachment; filename="{filename}"'

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        make_next = sync_to_async(lambda: next(pieces, None), thread_sensitive=False)
        while (piece := await make_next()) is not None:
            yield piece


class Download(Attachment):
    """A file whose bytes are known before they are sent."""

    def __init__(self, pieces: Iterator[bytes], *, filename: str, size_bytes: int, digest: str) -> None:
        super().__init__(pieces, filename=filename, content_type="application/octet-stream")
        self.headers["Content-Length"] = str(size_bytes)
        self.headers["ETag"] = f'"{digest}"'
        self.headers["Accept-Ranges"] = "bytes"


def download(
    pieces: Callable[[int], Iterator[bytes]], asked: Asked, *, filename: str, size_bytes: int, digest: str
) -> HttpResponse | Download:
    """Return the response with all bytes, with the requested range, or 416 where the range is not satisfiable.

    Args:
        pieces: yields the bytes from an offset on.
    """
    if asked.if_range and asked.if_range != f'"{digest}"':
        asked = Asked("", "")
    span = span_of(asked.range, size_bytes)
    if span is None:
        return Download(pieces(0), filename=filename, size_bytes=size_bytes, digest=digest)
    if span.first >= size_bytes:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size_bytes}"})
    length = span.last - span.first + 1
    part = Download(_at_most(pieces(span.first), length), filename=filename, size_bytes=length, digest=digest)
    part.status_code = 206
    part.headers["Content-Range"] = f"bytes {span.first}-{span.last}/{size_bytes}"
    return part


def span_of(header: str, size_bytes: int) -> Span | None:
    """Return the range of a Range header; None for the whole file, and for forms that need not be honoured.

    RFC 9110, section 14.2: a server may ignore Range. A single range with a first byte is honoured.
    """
    match = _ONE_RANGE.fullmatch(header.strip())
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or size_bytes - 1)
    if match[2] and last < first:
        return None
    return Span(first, min(last, size_bytes - 1))


def _at_most(pieces: Iterator[bytes], left: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return
