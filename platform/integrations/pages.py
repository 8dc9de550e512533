"""Pages of metrics over HTTP, as other processes serve them: whoever is asked can hold nobody up and fill no memory."""

import time
from collections.abc import Iterable, Mapping

import httpx

from common.errors import Unavailable
from integrations.trust import trust

TIMEOUT_S = 2.0
"""Longest time for a whole page."""
MOST_BYTES = 8 << 20


def read(url: str, query: Mapping[str, str] | None = None, *, timeout_s: float = TIMEOUT_S) -> str:
    """Return a page's text; raises Unavailable where it cannot be read, in time and within `MOST_BYTES`."""
    deadline = time.monotonic() + timeout_s
    try:
        with (
            httpx.Client(timeout=timeout_s, trust_env=False, verify=trust()) as client,
            client.stream("GET", url, params=query) as answer,
        ):
            answer.raise_for_status()
            return bounded(answer.iter_bytes(), url, deadline)
    except httpx.HTTPError as error:
        raise Unavailable(f"the metrics at {url} cannot be read: {error}") from error


def bounded(parts: Iterable[bytes], where: str, deadline: float) -> str:
    """Return the text that the parts make; raises Unavailable past the deadline or the most bytes.

    Args:
        deadline: of the monotonic clock.
    """
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > MOST_BYTES:
            raise Unavailable(f"the metrics at {where} have more than {MOST_BYTES >> 20} MiB, which nobody reads")
        if time.monotonic() > deadline:
            raise Unavailable(f"the metrics at {where} take too long to come")
    return content.decode(errors="replace")
