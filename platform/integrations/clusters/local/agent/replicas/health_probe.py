"""Readiness probe of a replica's process, periodically over one connection.

Each second for each replica, a client library would be most of an idle agent's cost. The process may be a model's: a
response counts only in time, and only its first kilobytes are read.
"""

import asyncio
from contextlib import suppress

from integrations.clusters.local.envoy.values import Place

_PATH = "/v2/health/ready"
_REQUEST = f"GET {_PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
_MOST_BYTES = 16_384
_READY = 200


class HealthProbe:
    """Probes one process at `place`."""

    def __init__(self, place: Place, *, timeout_s: float) -> None:
        self._place = place
        self._timeout_s = timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def is_ready(self) -> bool | None:
        """Return whether the process is ready; None where it does not answer as a server does."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._ask()
        except (OSError, EOFError, ValueError, LookupError, asyncio.LimitOverrunError):
            self.close()
            return None
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next probe opens another."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _ask(self) -> bool:
        if self._streams is None or self._streams[1].is_closing() or self._streams[0].at_eof():
            self.close()
            self._streams = await self._opened()
        reader, writer = self._streams
        writer.write(_REQUEST)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = _content_length(head)
        if length is None or b"\r\nconnection: close\r\n" in head:
            self.close()
        else:
            await reader.readexactly(length)
        return int(head.split(b" ", 2)[1]) == _READY

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._place, str):
            return await asyncio.open_unix_connection(self._place, limit=_MOST_BYTES)
        return await asyncio.open_connection("127.0.0.1", self._place, limit=_MOST_BYTES)


def _content_length(head: bytes) -> int | None:
    """Return the length of the body that follows a head in lower case; None where it is unknown or too long."""
    _, found, rest = head.partition(b"\r\ncontent-length:")
    with suppress(ValueError):
        length = int(rest.partition(b"\r\n")[0])
        return length if found and 0 <= length <= _MOST_BYTES else None
    return None
