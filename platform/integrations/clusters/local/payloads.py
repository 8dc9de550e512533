"""Payload taps of replicas on this machine, as the agent switches them (`clusters/payloads.py` reads the records).

payloads/<namespace>.<service>/<revision>/share             agent -> replicas: how much to record; no file, nothing
payloads/<namespace>.<service>/<revision>/<index>/*.jsonl   replica -> driver

Everything is readable by its owner only: it holds client requests. A replica keeps a bounded number of bytes.
"""

import asyncio
import shutil
from pathlib import Path

from integrations.clusters.base import Tap
from integrations.clusters.local.state_files import StateFiles
from integrations.clusters.payloads import KEPT_S, MAX_REPLICA_BYTES


class RevisionTap:
    """The taps of one revision's replicas, as the agent has them."""

    def __init__(self, folder: Path, files: StateFiles) -> None:
        self._folder = folder
        self._share = folder / "share"
        self._files = files
        self._tap: Tap | None = None
        self._off_since: float | None = None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._share.unlink(missing_ok=True)

    @property
    def switches(self) -> Path:
        """Return the folder where replicas read what to record."""
        return self._folder

    def flags(self, index: int) -> list[str]:
        """Return a replica's flags: it can be tapped at any time, at no cost until then."""
        return [
            f"--payload-tap={(self._folder / str(index)).as_uri()}/",
            f"--payload-tap-share-file={self._share}",
            f"--payload-tap-max-file-bytes={MAX_REPLICA_BYTES}",
        ]

    def folder(self, index: int) -> Path:
        """Return the folder where a replica records, created if absent."""
        place = self._folder / str(index)
        place.mkdir(mode=0o700, exist_ok=True)
        return place

    def switch(self, tap: Tap | None, now: float) -> None:
        """Make the replicas record as `tap` says; `now` is seconds of a monotonic clock."""
        if tap != self._tap:
            if tap is None:
                self._files.remove(self._share)
                self._off_since = now
            else:
                self._files.put(self._share, f"{tap.share_percent / 100}\n")
            self._tap = tap
        elif tap is None and self._off_since is not None and now - self._off_since >= KEPT_S:
            for path in self._folder.glob("*/*.jsonl"):
                path.unlink(missing_ok=True)
            self._off_since = None

    async def remove(self) -> None:
        """Drop everything, once no replica runs any more."""
        self._files.remove(self._share)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
