"""Models of a pool's replicas: whatever its fetcher has."""

import asyncio
from pathlib import Path

from integrations.clusters.local.agent.pools.catalog import Catalog
from integrations.clusters.local.agent.pools.fetcher import PoolFetcher


class PoolSource:
    """The models of a pool; its fetcher runs as long as this."""

    def __init__(self, fetcher: PoolFetcher) -> None:
        self._fetcher = fetcher
        self.catalog = Catalog(fetcher.catalog)

    @property
    def flags(self) -> list[str]:
        """Return the runtime's flags."""
        return [f"--model-pool={self._fetcher.socket}"]

    @property
    def folders(self) -> list[Path]:
        """Return the folders that the runtime reads."""
        return [self._fetcher.cache, self._fetcher.socket.parent]

    async def prepare(self) -> None:
        """Do nothing: a replica waits for the fetcher."""

    async def remove(self) -> None:
        """End the fetcher, and remove what it has fetched."""
        await self._fetcher.close()
        await asyncio.to_thread(self._fetcher.remove)
