"""An answer of many bytes, sent piece by piece under ASGI as well as under WSGI and in tests."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse


class Download(StreamingHttpResponse):
    """A file that the client is to keep under `filename`, which must be plain ASCII without quotes.

    Django would read a synchronous iterator to its end, into memory, before it sends the first byte under ASGI. Here
    one piece is made at a time, in a thread, when the client has taken the one before.
    """

    def __init__(self, pieces: Iterator[bytes], *, filename: str, size_bytes: int, digest: str) -> None:
        super().__init__(pieces, content_type="application/octet-stream")
        self.headers["Content-Length"] = str(size_bytes)
        self.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
        self.headers["ETag"] = f'"{digest}"'

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        make_next = sync_to_async(lambda: next(pieces, None), thread_sensitive=False)
        while (piece := await make_next()) is not None:
            yield piece
