"""Payload logger sink: posts single CloudEvents in HTTP's binary mode, as KServe's payload logger does.

Attributes are in headers, V2's JSON is the body. `ce-id` is the request's id in the events of a request and of its
responses, which the type distinguishes.
"""

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import httpx

from serving_runtime.shared.egress import EgressRefusedError, Network, permitted
from serving_runtime.telemetry.tap.sinks import Event, SinkError
from serving_runtime.telemetry.tap.writing import written

_TIMEOUT_S = 10.0
_AT_ONCE = 8
_RESOLVED_S = 30.0
"""How long a receiver's resolved addresses are used before its name is resolved again."""
# CloudEvents, HTTP binding: characters of a header value that are not encoded.
_AS_IT_IS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class LoggerSink:
    """Posts events concurrently; each is sent once, whatever the response. Follows no redirects.

    Args:
        attributes: of every event, beside its own.
        allowed: private networks that may be posted to; connections go to the checked addresses, without a proxy. None
            allows any address, for a server whose operator has chosen the URL.
        through: a Unix socket to the receiver; no name is resolved then, and no address checked.
    """

    gather_s = 0.0

    def __init__(
        self,
        url: str,
        attributes: Mapping[str, str],
        allowed: Sequence[Network] | None = None,
        *,
        through: Path | None = None,
    ) -> None:
        self._url = url
        self._attributes = {f"ce-{name}": _value(value) for name, value in attributes.items()}
        self._targets = _Targets(httpx.URL(url), allowed if through is None else None)
        self._through = through
        self._runner = asyncio.Runner()
        self._client: httpx.AsyncClient | None = None

    def write(self, events: list[Event]) -> None:
        problems = [problem for problem in self._runner.run(self._posted(events)) if problem]
        if problems:
            raise SinkError(problems[0], taken=len(events) - len(problems))

    def flush(self) -> None:
        """Does nothing: every write is sent at once."""

    def close(self) -> None:
        if self._client is not None:
            self._runner.run(self._client.aclose())
        self._runner.close()

    async def _posted(self, events: list[Event]) -> list[str]:
        """Return why each event was refused, empty where it was accepted."""
        if self._client is None:
            self._client = self._opened()
        try:
            targets = await self._targets.now()
        except (EgressRefusedError, OSError, UnicodeError) as error:
            return [f"{self._url}: {error}"] * len(events)
        return await asyncio.gather(*[self._post(self._client, targets, event) for event in events])

    def _opened(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=_AT_ONCE, max_keepalive_connections=_AT_ONCE)
        # A proxy would resolve the name itself, and is not behind the socket.
        proxies = self._through is None and not self._targets.is_limited
        transport = None
        if self._through is not None:
            transport = httpx.AsyncHTTPTransport(uds=str(self._through), limits=limits)
        timeout = httpx.Timeout(_TIMEOUT_S, pool=None)
        return httpx.AsyncClient(
            limits=limits, timeout=timeout, trust_env=proxies, follow_redirects=False, transport=transport
        )

    async def _post(self, client: httpx.AsyncClient, targets: Sequence[httpx.URL], event: Event) -> str:
        attributes = {f"ce-{name}": _value(value) for name, value in event.items() if name not in _NO_HEADER}
        headers = {**attributes, **self._attributes, "ce-id": _value(event["requestid"])}
        headers["content-type"] = event["datacontenttype"]
        headers["host"] = self._targets.host_header
        body = written(event["data"])
        sni = {"sni_hostname": self._targets.host}
        problem = ""
        for target in targets:
            try:
                answer = await client.post(target, content=body, headers=headers, extensions=sni)
            except httpx.ConnectError as error:
                problem = f"{self._url}: {error or type(error).__name__}"  # another of its addresses may work
            except httpx.HTTPError as error:
                return f"{self._url}: {error or type(error).__name__}"
            else:
                return "" if answer.is_success else f"{self._url} answered {answer.status_code}"
        return problem


class _Targets:
    """A receiver's URLs: one for each address of its host that may be posted to."""

    def __init__(self, url: httpx.URL, allowed: Sequence[Network] | None) -> None:
        self.host = url.host
        self.host_header = url.netloc.decode("ascii")
        self.is_limited = allowed is not None
        self._url = url
        self._allowed = allowed
        self._resolved: list[httpx.URL] = []
        self._resolved_until = 0.0

    async def now(self) -> Sequence[httpx.URL]:
        """Return them; raises EgressRefusedError, and OSError or UnicodeError for a name that does not resolve."""
        if self._allowed is None:
            return [self._url]
        if time.monotonic() >= self._resolved_until:
            port = self._url.port or (443 if self._url.scheme == "https" else 80)
            found = await asyncio.get_running_loop().getaddrinfo(self.host, port, type=socket.SOCK_STREAM)
            addresses = permitted(self.host, [str(entry[4][0]) for entry in found], self._allowed)
            self._resolved = [self._url.copy_with(host=address) for address in addresses]
            self._resolved_until = time.monotonic() + _RESOLVED_S
        return self._resolved


_NO_HEADER = frozenset({"id", "data", "datacontenttype"})


def _value(value: object) -> str:
    return quote(str(value), safe=_AS_IT_IS, errors="replace")
