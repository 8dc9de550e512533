"""A runtime's model pool: the source of its engine's models, and what protocols need of it."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from serving_runtime.common.errors import NotFound, ServingError
from serving_runtime.engine.lifecycle.model_lifecycle import Lifecycle
from serving_runtime.engine.lifecycle.on_demand import OnDemand
from serving_runtime.pools.client import FetcherClient, connect_soon
from serving_runtime.pools.directory import Directory, Entry
from serving_runtime.pools.loader import PoolLoader
from serving_runtime.pools.metrics import PoolCounts
from serving_runtime.pools.names import ServiceName, VersionKey, key_of, shown, version_of
from serving_runtime.telemetry.metrics.families import Family, ModelSeries


class ModelPool:
    """The models of one catalog, by their fetcher's socket (engine.lifecycle.on_demand.Source).

    Attributes:
        counts: of its requests and loads; protocols count the requests.
    """

    def __init__(self, socket: Path, timeout_s: float) -> None:
        self.counts = PoolCounts()
        self._client = FetcherClient(socket)
        self._directory = Directory(self._client)
        self._timeout_s = timeout_s
        self._loader: PoolLoader
        self._connecting: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether the fetcher was ever reached."""
        return self._client.was_connected

    @property
    def fetcher_requests(self) -> int:
        return self._client.requests

    def stays(self, name: str) -> bool:
        """Return whether a loaded version is pinned."""
        key = key_of(name)
        entry = self._directory.known(key.model) if key is not None else None
        return entry is not None and entry.pinned

    def loader(self, lifecycle: Lifecycle) -> OnDemand:
        self._loader = PoolLoader(lifecycle, self._timeout_s, self._client, self._directory, self.counts)
        return self._loader

    def series(self) -> list[ModelSeries]:
        return self._loader.series()

    def start(self) -> None:
        """Connect to the fetcher as soon as it is there."""
        self._connecting = asyncio.get_running_loop().create_task(connect_soon(self._client))

    def usable(self, service: ServiceName, version: int | None = None) -> Entry | None:
        """Return what the catalog says of a service, None where it must be looked up; raises NotFound.

        Args:
            version: that the request names.
        """
        return self._directory.usable(service.model, version)

    async def look(self, service: ServiceName, version: int | None = None) -> Entry:
        """Return what the catalog says of a service; raises ServingError."""
        return await self._directory.look(service.model, version)

    def failure(self, key: VersionKey) -> ServingError | None:
        """Return why a version failed to load lately."""
        return self._loader.failure(str(key))

    async def prefetch(self, name: str) -> None:
        """Load <namespace>.<service>@<version> before its first request; raises ServingError."""
        key = key_of(name)
        if key is None:
            raise NotFound(f"{shown(name)} is not <namespace>.<service>@<version>")
        entry = await self._directory.look(key.model, key.version)
        await self._loader.prefetch(entry.key(key.version))

    def families(self) -> Iterable[Family]:
        """Return the metrics of the pool."""
        loader = self._loader
        return self.counts.families(
            loaded_models=loader.loaded_models,
            used_bytes=loader.budget.used_bytes,
            limit_bytes=loader.budget.limit_bytes,
            waiting=loader.waiting,
        )

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        self._directory.close()
        self._client.close()


def number(version: str) -> int | None:
    """Return the version of a request, None for an empty text; raises NotFound for one that is no number."""
    if not version:
        return None
    found = version_of(version)
    if found is None:
        raise NotFound(f"version {shown(version)} is no number of 1 to 18 digits")
    return found
