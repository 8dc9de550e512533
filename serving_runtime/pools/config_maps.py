"""Catalog in ConfigMaps of a Kubernetes cluster, read through its API server: the documents of a pool in 256 shards.

    <prefix>-<first two hex digits of sha256 of the model's name>     data: {"<namespace>.<service>": document}

A shard is read when a model of it is looked up, and kept for a second; with many shards in use for longer, so that a
replica sends a bounded number of requests. A model or a version that a shard lacks is looked for in one that was read
after the question. The pod's account may get these ConfigMaps by name, and nothing else.
"""

import asyncio
import hashlib
import json
import ssl
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from serving_runtime.common.errors import ModelError, Unavailable
from serving_runtime.pools.catalog import MAX_BYTES, Document, parse
from serving_runtime.pools.names import is_model

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder with the token and the API server's certificate authority, as Kubernetes has it in pods."""
FRESH_S = 1.0
READS_PER_S = 16
"""Limit of the repeated reads of all shards in use."""
AGAIN_S = 0.2
"""Shortest time between two reads of a shard."""
_USED_S = 60.0
_MOST_AT_ONCE = 8
_MAX_SHARD_BYTES = 4 << 20
_TIMEOUT = httpx.Timeout(5.0)


@dataclass(slots=True)
class _Shard:
    """What was read of a shard; the times are monotonic seconds."""

    texts: Mapping[str, str] = field(default_factory=dict)
    read_at: float = float("-inf")
    used_at: float = float("-inf")
    reading: "asyncio.Task[None] | None" = None


class ConfigMapCatalog:
    """Looks documents up. Lives on one event loop.

    Attributes:
        reads: number of requests to the API server.
    """

    def __init__(self, namespace: str, prefix: str, server: str, account: Path = ACCOUNT) -> None:
        """Read from a server, such as `https://10.0.0.1:443`.

        Args:
            account: folder with `token` and, for https, `ca.crt`.
        """
        self.reads = 0
        self._path = f"{server}/api/v1/namespaces/{namespace}/configmaps/{prefix}-"
        self._account = account
        self._shards: OrderedDict[str, _Shard] = OrderedDict()
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._client: httpx.AsyncClient | None = None

    def __str__(self) -> str:
        return f"{self._path}*"

    async def find(self, model: str, *, newest: bool = False) -> Document | None:
        """Return a model's document, None where the catalog has none.

        Args:
            newest: as it is now, not as it was up to seconds ago.

        Raises:
            ModelError: the document cannot be used.
            Unavailable: the API server does not answer.
        """
        if not is_model(model):
            return None
        asked_at = time.monotonic()
        name = hashlib.sha256(model.encode()).hexdigest()[:2]
        shard = self._shards.setdefault(name, _Shard())
        shard.used_at = asked_at
        self._shards.move_to_end(name)
        if newest or shard.read_at < asked_at - self._fresh_s(asked_at) or model not in shard.texts:
            await self._read_after(name, shard, asked_at)
        text = shard.texts.get(model)
        if text is None:
            return None
        content = text.encode()
        if len(content) > MAX_BYTES:
            raise ModelError(
                f"the catalog's document of '{model}' has more than {MAX_BYTES} bytes; write a smaller one"
            )
        return parse(content, model)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    def _fresh_s(self, at: float) -> float:
        while self._shards and next(iter(self._shards.values())).used_at < at - _USED_S:
            self._shards.popitem(last=False)
        return max(FRESH_S, len(self._shards) / READS_PER_S)

    async def _read_after(self, name: str, shard: _Shard, asked_at: float) -> None:
        """Return once a read of the shard that began after `asked_at` is over; it serves all who wait for it."""
        while shard.read_at < asked_at:
            if shard.reading is None:
                shard.reading = asyncio.get_running_loop().create_task(self._read(name, shard))
            await asyncio.shield(shard.reading)

    async def _read(self, name: str, shard: _Shard) -> None:
        try:
            await asyncio.sleep(max(0.0, shard.read_at + AGAIN_S - time.monotonic()))
            async with self._turns:
                began_at = time.monotonic()
                shard.texts = await self._texts(name)
                shard.read_at = began_at
        finally:
            shard.reading = None

    async def _texts(self, name: str) -> Mapping[str, str]:
        url = f"{self._path}{name}"
        self.reads += 1
        try:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connected)
            token = (self._account / "token").read_text(encoding="ascii").strip()  # replaced before it expires
            async with self._client.stream("GET", url, headers={"Authorization": f"Bearer {token}"}) as answer:
                content = await _bounded(answer, url)
        except (httpx.HTTPError, OSError) as error:
            raise Unavailable(f"the catalog at {url} cannot be read: {error or type(error).__name__}") from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return {}
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"the catalog at {url} cannot be read: the API server answered {answer.status_code}")
        return _data(content, url)

    def _connected(self) -> httpx.AsyncClient:
        authority = self._account / "ca.crt"
        verify = ssl.create_default_context(cafile=str(authority)) if self._path.startswith("https:") else True
        return httpx.AsyncClient(verify=verify, timeout=_TIMEOUT, trust_env=False)


async def _bounded(answer: httpx.Response, url: str) -> bytes:
    content = bytearray()
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > _MAX_SHARD_BYTES:
            raise Unavailable(f"the catalog at {url} has more than {_MAX_SHARD_BYTES} bytes")
    return bytes(content)


def _data(content: bytes, url: str) -> Mapping[str, str]:
    try:
        found: Any = json.loads(content)
        data = found.get("data") or {}
    except (ValueError, RecursionError, AttributeError) as error:
        raise Unavailable(f"the catalog at {url} is no ConfigMap: {error}") from error
    return {name: text for name, text in data.items() if isinstance(text, str)} if isinstance(data, dict) else {}
