"""Webhook delivery to addresses that callers chose, protected against server-side request forgery (SSRF).

The host's name is resolved here and the connection goes to the checked address, so that a name that resolves
differently a moment later is of no use. Redirects are not followed, proxies of the environment not used.
"""

import socket
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import httpx

from common.errors import InvalidInput, Unavailable
from serving_runtime.shared.egress import EgressRefusedError, Network, permitted

_ANSWER_BYTES = 1000


def check_url(url: str, *, field: str = "url") -> str:
    """Return `url` if it is one to post to; raises InvalidInput."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and parts.username is None and not parts.fragment and httpx.URL(url).host != ""
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable or len(url) > 1000 or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(
            f"{field} is {url[:80]!r}; expected http:// or https:// with a host, without user or fragment", field=field
        )
    return url


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, allowed: Sequence[Network], timeout_s: float
) -> tuple[int, str]:
    """Post `body` and return the answer's status and the beginning of its text.

    Args:
        allowed: networks that may be posted to although they are not public.

    Raises:
        Unavailable: no answer came in time, or the address is not one that may be posted to.
    """
    parts = httpx.URL(url)
    addresses = _checked_addresses(parts.host, parts.port or (443 if parts.scheme == "https" else 80), allowed)
    deadline = time.monotonic() + timeout_s
    for address in addresses:
        try:
            return _post_to(address, parts, body, headers, deadline)
        except httpx.ConnectError as error:
            problem: httpx.HTTPError = error  # another of the host's addresses may answer
        except httpx.HTTPError as error:
            problem = error
            break
    raise Unavailable(f"{url} did not answer: {problem or type(problem).__name__}") from problem


def _post_to(address: str, url: httpx.URL, body: bytes, headers: Mapping[str, str], deadline: float) -> tuple[int, str]:
    with (
        httpx.Client(timeout=max(0.1, deadline - time.monotonic()), trust_env=False, follow_redirects=False) as client,
        client.stream(
            "POST",
            url.copy_with(host=address),
            content=body,
            headers={**headers, "Host": url.netloc.decode("ascii")},
            extensions={"sni_hostname": url.host},
        ) as answer,
    ):
        text = b""
        for chunk in answer.iter_raw(_ANSWER_BYTES):
            text += chunk
            if len(text) >= _ANSWER_BYTES or time.monotonic() > deadline:
                break
        return answer.status_code, text[:_ANSWER_BYTES].decode(errors="replace").replace("\0", "")


def _checked_addresses(host: str, port: int, allowed: Sequence[Network]) -> list[str]:
    """Return the addresses of `host`; raises Unavailable where one of them may not be reached."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the name {host!r} cannot be resolved: {error}") from error
    try:
        return permitted(host, [str(entry[4][0]) for entry in found], allowed)
    except EgressRefusedError as error:
        raise Unavailable(str(error)) from error
