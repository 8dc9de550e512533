"""Outbound HTTP requests to addresses that callers chose, protected against server-side request forgery (SSRF).

The host's name is resolved here and the connection goes to the checked address, so that a name that resolves
differently a moment later is of no use. Redirects are not followed, proxies of the environment not used. A time-out is
for the whole exchange after the resolution: httpx' own are for each read, so that a server which sends a byte now and
then would hold the caller for hours.
"""

import hashlib
import hmac
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from common.errors import InvalidInput, Unavailable
from integrations.otlp.tracing import of_process
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
    with _answer(httpx.Request("POST", url, content=body, headers=headers), allowed, timeout_s) as answer:
        text = b""
        with suppress(httpx.TimeoutException):  # the status is the answer
            for chunk in answer.iter_raw():
                text += chunk
                if len(text) >= _ANSWER_BYTES:
                    break
        return answer.status_code, text[:_ANSWER_BYTES].decode(errors="replace").replace("\0", "")


def get(url: str, *, allowed: Sequence[Network], timeout_s: float, most_bytes: int) -> bytes:
    """Return the body at `url`.

    Raises:
        Unavailable: no whole answer came in time, it is not a 200, it is larger than `most_bytes`, or the address is
            not one that may be reached.
    """
    request = httpx.Request("GET", url, headers={"Accept-Encoding": "identity"})
    with _answer(request, allowed, timeout_s) as answer:
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"{url} answered with status {answer.status_code}")
        body = b""
        for chunk in answer.iter_raw():
            body += chunk
            if len(body) > most_bytes:
                raise Unavailable(f"{url} answered with more than {most_bytes} bytes")
        return body


@contextmanager
def _answer(request: httpx.Request, allowed: Sequence[Network], timeout_s: float) -> Iterator[httpx.Response]:
    """Send the request to a checked address; give the answer, its body unread."""
    url = request.url
    addresses = _checked_addresses(url.host, url.port or (443 if url.scheme == "https" else 80), allowed)
    transport = _Transport(time.monotonic() + timeout_s)
    try:
        with httpx.Client(transport=transport, timeout=timeout_s, trust_env=False, follow_redirects=False) as client:
            about = {"http.request.method": request.method, "server.address": url.host}  # paths may hold secrets
            with of_process.call(request.method, about) as span:
                answer = _first_answer(client, request, addresses)
                span.set("http.response.status_code", answer.status_code)
            try:
                yield answer
            finally:
                answer.close()
    except httpx.TimeoutException as error:
        raise Unavailable(f"{url} did not answer within {timeout_s:g} s") from error
    except httpx.HTTPError as error:
        raise Unavailable(f"{url} did not answer: {error or type(error).__name__}") from error


def _first_answer(client: httpx.Client, request: httpx.Request, addresses: Sequence[str]) -> httpx.Response:
    """Return the answer of the first address that takes a connection."""
    url, headers = request.url, request.headers.copy()
    headers["Host"] = url.netloc.decode("ascii")
    for number, address in enumerate(addresses, start=1):
        at = client.build_request(
            request.method,
            url.copy_with(host=address),
            content=request.content,
            headers=headers,
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


class _Transport(httpx.HTTPTransport):
    """httpx' transport, all of whose connections end at a time of the monotonic clock."""

    def __init__(self, deadline: float) -> None:
        context = httpx.create_ssl_context(trust_env=False)
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(ssl_context=context, network_backend=_Backend(deadline))


class _Backend(httpcore.SyncBackend):
    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline counts, as in the stream
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left_s = _left_s(self._deadline, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left_s, local_address, socket_options), self._deadline)


class _Stream(httpcore.NetworkStream):
    """httpcore's stream, with what is left until the deadline as the time-out of each step."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, timeout=_left_s(self._deadline, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        # httpcore would wait as long for each piece that goes out.
        connection: socket.socket = self._stream.get_extra_info("socket")
        try:
            while buffer:
                connection.settimeout(_left_s(self._deadline, httpcore.WriteTimeout))
                buffer = buffer[connection.send(buffer) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left_s = _left_s(self._deadline, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout=left_s), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left_s(deadline: float, late: type[httpcore.TimeoutException]) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise late("the time for the exchange is over")
    return left_s
