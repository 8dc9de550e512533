"""Outbound HTTP requests to addresses that callers chose, protected against server-side request forgery (SSRF).

The host's name is resolved here and the connection goes to the checked address, so that a name that resolves
differently a moment later is of no use. Redirects are not followed, proxies of the environment not used.
"""

import hashlib
import hmac
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from urllib.parse import urlsplit

import httpx

from common.errors import InvalidInput, Unavailable
from serving_runtime.shared.egress import EgressRefusedError, Network, permitted

_ANSWER_BYTES = 1000


def check_url(url: str, *, field: str = "url") -> str:
    """Return `url` if it is one to send requests to; raises InvalidInput."""
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


def signature_of(secret: str, body: bytes, now: datetime) -> str:
    """Return the value of `Fairlead-Signature`: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`."""
    moment = str(int(now.timestamp()))
    digest = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, allowed: Sequence[Network], timeout_s: float
) -> tuple[int, str]:
    """Post `body` and return the answer's status and the beginning of its text.

    Args:
        allowed: networks that may be reached although they are not public.

    Raises:
        Unavailable: no answer came in time, or the address is not one that may be reached.
    """
    with _answer(httpx.Request("POST", url, content=body, headers=headers), allowed, timeout_s) as (answer, deadline):
        text = b""
        for chunk in answer.iter_raw(_ANSWER_BYTES):
            text += chunk
            if len(text) >= _ANSWER_BYTES or time.monotonic() > deadline:
                break
        return answer.status_code, text[:_ANSWER_BYTES].decode(errors="replace").replace("\0", "")


def get(url: str, *, allowed: Sequence[Network], timeout_s: float, most_bytes: int) -> bytes:
    """Return the body at `url`.

    Raises:
        Unavailable: no whole answer came in time, it is not a 200, it is larger than `most_bytes`, or the address is
            not one that may be reached.
    """
    with _answer(httpx.Request("GET", url, headers={"Accept-Encoding": "identity"}), allowed, timeout_s) as (
        answer,
        deadline,
    ):
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"{url} answered with status {answer.status_code}")
        body = b""
        for chunk in answer.iter_raw():
            body += chunk
            if len(body) > most_bytes:
                raise Unavailable(f"{url} answered with more than {most_bytes} bytes")
            if time.monotonic() > deadline:
                raise Unavailable(f"{url} did not answer whole within {timeout_s:g} s")
        return body


@contextmanager
def _answer(
    request: httpx.Request, allowed: Sequence[Network], timeout_s: float
) -> Iterator[tuple[httpx.Response, float]]:
    """Send the request to a checked address; give the answer, its body unread, and the end of the time for it."""
    url, deadline = request.url, time.monotonic() + timeout_s
    addresses = _checked_addresses(url.host, url.port or (443 if url.scheme == "https" else 80), allowed)
    try:
        with httpx.Client(timeout=timeout_s, trust_env=False, follow_redirects=False) as client:
            answer = _first_answer(client, request, addresses, deadline)
            try:
                yield answer, deadline
            finally:
                answer.close()
    except httpx.HTTPError as error:
        raise Unavailable(f"{url} did not answer: {error or type(error).__name__}") from error


def _first_answer(
    client: httpx.Client, request: httpx.Request, addresses: Sequence[str], deadline: float
) -> httpx.Response:
    """Return the answer of the first address that takes a connection."""
    url, headers = request.url, request.headers.copy()
    headers["Host"] = url.netloc.decode("ascii")
    for number, address in enumerate(addresses, start=1):
        at = client.build_request(
            request.method,
            url.copy_with(host=address),
            content=request.content,
            headers=headers,
            timeout=max(0.1, deadline - time.monotonic()),
            extensions={"sni_hostname": url.host},
        )
        try:
            return client.send(at, stream=True)
        except httpx.ConnectError:
            if number == len(addresses):
                raise
    raise httpx.ConnectError("its name has no address")


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
