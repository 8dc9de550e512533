"""The process that fetches models for a pool's replicas: started, and started again where it ends.

It is outside of the sandbox of the models, in one of its own that reads artifacts and writes the pool's cache.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from common.errors import FairleadError
from integrations.clusters.flags import allows_python
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.agent.sockets import folder_of
from integrations.clusters.local.confinement import confined
from integrations.clusters.local.runtime import inherited
from integrations.sandbox.policy import NetworkAccess

log = logging.getLogger(__name__)

SUFFIX = ".fetcher"
"""Suffix of its program's name, after the pool's."""
_LIMITS = {"core": 0, "nofile": 1 << 16}


class PoolFetcher:
    """The fetcher of one pool.

    Attributes:
        catalog, cache: folders of the pool.
        socket: where replicas ask it.
    """

    def __init__(self, workshop: Workshop, pool: str) -> None:
        """Start it; raises OSError.

        Args:
            pool: `<namespace>.<pool>`.
        """
        self._workshop = workshop
        self._name = f"{pool}{SUFFIX}"
        folder = workshop.layout.pools / pool
        self.catalog, self.cache = folder / "catalog", folder / "cache"
        self._artifacts = Path(os.environ.get("FAIRLEAD_ARTIFACTS_FOLDER", workshop.layout.home / "artifacts"))
        # Its sandbox opens what is there when it starts, and the first model may be pushed later.
        for each in (self.catalog, self.cache, self._artifacts):
            each.mkdir(parents=True, exist_ok=True)
        # Replicas of an earlier agent see this folder, so that it stays the same.
        self.socket = folder_of(workshop.layout, self._name) / "fetcher"
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._process: Process | None = None
        self._life = asyncio.create_task(self._run(), name=self._name)

    async def close(self) -> None:
        """End it; its cache stays until the pool is removed."""
        self._life.cancel()
        await asyncio.wait({self._life})
        if self._process is not None:
            if self._process.running:
                await self._process.kill()
            self._process.forget()
        shutil.rmtree(self.socket.parent, ignore_errors=True)

    def remove(self) -> None:
        """Remove what it has fetched."""
        shutil.rmtree(self.catalog.parent, ignore_errors=True)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                self._process = Process(
                    self._workshop.holder, self._program(), self._workshop.files, restarts=failures, message=""
                )
                await self._process.ended()
                ending = f"ended with exit code {self._process.exit_code}"
            except (FairleadError, OSError) as error:
                ending = f"cannot be started: {error}"
            failures += 1
            wait_s = self._workshop.timing.backoff_s(failures)
            log.warning("%s %s; starting it again in %g s", self._name, ending, wait_s)
            await asyncio.sleep(wait_s)

    def _program(self) -> Program:
        layout = self._workshop.layout
        command = _program_of(self._workshop.runtime)
        return Program(
            command=[
                *command,
                "pool-fetcher",
                f"--catalog={self.catalog}",
                f"--cache={self.cache}",
                f"--socket={self.socket}",
                *(["--allow-code-files=true"] if allows_python(self._workshop.runtime) else []),
            ],
            env={**inherited(os.environ), "FAIRLEAD_HOME": str(layout.home)},
            log=layout.logs / f"{self._name}.log",
            record=layout.run / f"{self._name}.json",
            sandbox=confined(
                command,
                read=[self._artifacts, self.catalog],
                write=[self.cache, self.socket.parent],
                network=NetworkAccess.ALL,
            ),
            limits=_LIMITS,
        )


def _program_of(runtime: Sequence[str]) -> list[str]:
    """Return the runtime's command without its flags."""
    return list(takewhile(lambda word: not word.startswith("--"), runtime))
