"""Metrics page reader over HTTP, bounded in time and size: no server can block the reader or fill its memory."""

import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import httpx

from common.errors import Unavailable
from integrations.trust import trust

TIMEOUT_S = 2.0
"""Longest time for a whole page."""
MOST_BYTES = 8 << 20
_UNIX = "http+unix"


def unix_url(at: Path, path: str) -> str:
    """Return the URL of a page served at a Unix socket."""
    return f"{_UNIX}://{quote(str(at), safe='')}{path}"


def read(url: str, query: Mapping[str, str] | None = None, *, timeout_s: float = TIMEOUT_S) -> str:
    """Return a page's text; raises Unavailable where it cannot be read in time and within `MOST_BYTES`."""
    deadline = time.monotonic() + timeout_s
    try:
        with (
            _client(url, timeout_s) as client,
            client.stream("GET", _seen_from_there(url), params=query) as answer,
        ):
            answer.raise_for_status()
            return bounded(answer.iter_bytes(), url, deadline)
    except (httpx.HTTPError, OSError) as error:
        raise Unavailable(f"the metrics at {url} cannot be read: {error}") from error


def _client(url: str, timeout_s: float) -> httpx.Client:
    parts = urlsplit(url)
    if parts.scheme == _UNIX:
        path = unquote(parts.netloc)
        with socket.socket(socket.AF_UNIX) as attempt:  # httpx leaves one that cannot connect to be collected
            attempt.settimeout(timeout_s)
            attempt.connect(path)
        return httpx.Client(timeout=timeout_s, transport=httpx.HTTPTransport(uds=path, verify=trust()))
    return httpx.Client(timeout=timeout_s, trust_env=False, verify=trust())


def _seen_from_there(url: str) -> str:
    """Return the URL as the server sees it, which knows no name of its socket."""
    parts = urlsplit(url)
    return parts._replace(scheme="http", netloc="localhost").geturl() if parts.scheme == _UNIX else url


def bounded(parts: Iterable[bytes], where: str, deadline: float) -> str:
    """Join the parts to text; raises Unavailable past the deadline or the byte limit.

    Args:
        deadline: of the monotonic clock.
    """
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > MOST_BYTES:
            raise Unavailable(f"the metrics at {where} have more than {MOST_BYTES >> 20} MiB, the most that is read")
        if time.monotonic() > deadline:
            raise Unavailable(f"the metrics at {where} take too long to come")
    return content.decode(errors="replace")
