"""Lists and watches on an event loop: many streams of many API servers, without a thread for each."""

import asyncio
import json
import random
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx

from common.errors import Unavailable
from integrations.clusters.kubernetes.access import Access, Credentials
from integrations.clusters.kubernetes.api.connection import refused_token, settings_of
from integrations.clusters.kubernetes.api.errors import refusal
from integrations.clusters.kubernetes.api.resource_types import Kind
from integrations.clusters.kubernetes.api.tls import tls_of

Json = dict[str, Any]

_WATCH_S = (180, 240)
"""Least and most that a stream lasts. At random, so that many do not end all at once.

The API server ends a silent one by then: it sends bookmarks of a kind only after the first event of that kind.
"""
_CONNECT_S, _READ_S = 10.0, 30.0
_SILENCE_S = 270.0
"""Longer than a stream: a server that is silent for so long does not answer."""
_PAGE = 500
_AT_ONCE = 3
"""Requests of one server that may be on their way to an answer: dozens of handshakes at once end each other's time."""
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
"""A server that vanished is noticed within 25 s."""


class WatchingApi:
    """Reads of one API server; raises Unavailable where it cannot be reached. To be used on one event loop."""

    def __init__(self, access: Access) -> None:
        """Prepare as `access` says; raises InvalidInput where it does not say how to reach a cluster."""
        self._settings = settings_of(access)
        self._access = access
        context = tls_of(access) if isinstance(access, Credentials) else _tls(self._settings)
        transport = httpx.AsyncHTTPTransport(
            verify=context, limits=httpx.Limits(max_connections=None), socket_options=_KEEPALIVE, trust_env=False
        )
        self._client = httpx.AsyncClient(transport=transport, base_url=self._settings.host, trust_env=False)
        name = self._settings.tls_server_name
        self._extensions = {"sni_hostname": name} if name else {}
        self._asks = asyncio.Semaphore(_AT_ONCE)

    async def pages(
        self, kind: Kind, namespace: str, labels: Mapping[str, str]
    ) -> AsyncIterator[tuple[list[Json], str]]:
        """Yield the objects page by page, each with the resourceVersion of the whole list; "" lists all namespaces."""
        query = {**_selected(labels), "limit": str(_PAGE)}
        while True:
            page = await self._get(kind.path(namespace), query)
            yield page["items"], str(page["metadata"]["resourceVersion"])
            following = page["metadata"].get("continue")
            if not following:
                return
            query["continue"] = str(following)

    async def events(
        self, kind: Kind, namespace: str, labels: Mapping[str, str], resource_version: str
    ) -> AsyncGenerator[Json | None, None]:
        """Yield None once the stream has begun, then the events from `resource_version` until the server ends it.

        Raises:
            HistoryGone: the server no longer has the events since then.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(random.randint(*_WATCH_S)),  # noqa: S311 - no secret
            **_selected(labels),
        }
        path = kind.path(namespace)
        timeout = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S)
        try:
            async with AsyncExitStack() as stack:
                extensions = {**self._extensions}
                asked = self._client.stream(
                    "GET", path, params=query, headers=await self._headers(), timeout=timeout, extensions=extensions
                )
                async with self._asks:
                    answer = await stack.enter_async_context(asked)
                if answer.status_code != httpx.codes.OK:
                    self._note(answer)
                    raise refusal(answer.status_code, await answer.aread(), f"the watch of {path}")
                yield None
                rest = b""
                async for chunk in answer.aiter_bytes():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield json.loads(line)
        except (httpx.HTTPError, OSError, ValueError) as error:
            raise self._silence(error) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _get(self, path: str, query: Mapping[str, str]) -> Json:
        timeout = httpx.Timeout(_READ_S, connect=_CONNECT_S)
        try:
            async with self._asks:
                answer = await self._client.get(
                    path,
                    params=dict(query),
                    headers=await self._headers(),
                    timeout=timeout,
                    extensions={**self._extensions},
                )
            if answer.status_code == httpx.codes.OK:
                return dict(json.loads(answer.content))
        except (httpx.HTTPError, OSError, ValueError) as error:
            raise self._silence(error) from error
        self._note(answer)
        raise refusal(answer.status_code, answer.content, f"GET {path}")

    def _note(self, answer: httpx.Response) -> None:
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            refused_token(self._access)

    async def _headers(self) -> dict[str, str]:
        """Return the headers of a request; tokens that a file or a program renews are read again, in a thread."""
        found = await asyncio.to_thread(self._settings.auth_settings)
        token = found.get("BearerToken", {}).get("value")
        return {"Accept": "application/json"} | ({"Authorization": str(token)} if token else {})

    def _silence(self, error: Exception) -> Unavailable:
        said = str(error) or type(error).__name__
        return Unavailable(f"the Kubernetes API server {self._settings.host} does not answer: {said}")


def _tls(settings: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert or None)
    if not settings.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


def _selected(labels: Mapping[str, str]) -> dict[str, str]:
    return {"labelSelector": ",".join(f"{name}={value}" for name, value in labels.items())} if labels else {}
