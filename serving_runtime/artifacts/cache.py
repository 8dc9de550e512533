"""Artifact cache shared by several pods, on their volume or on their node; least recently used artifacts are evicted.

    <cache>/<hex>              an artifact; its time says when it was wanted last
    <cache>/.incoming/         what is being fetched, and what is being removed
    <cache>/.locks/<hex>       held by who fetches (alone) or copies (together); a pod that is killed lets go of it

One pod fetches, the others wait for it and copy. After each fetch the least recently used artifacts are removed until
the rest fits the cache's bytes; one that is being copied stays.
"""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.artifacts.download import NoRoomError, Say, TooLargeError
from serving_runtime.artifacts.fetch_artifact import INCOMING, Order, fetch
from serving_runtime.artifacts.unpack import digest_of_folder

_LOCKS = ".locks"
_TURNS = 3
_POLL_S = 0.2
_ABANDONED_AFTER_S = 24 * 3600.0
_LOG_EVERY_S = 10.0


class CacheUnusableError(Exception):
    """The cache cannot be used for this artifact; it can be fetched without."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder that pods share.

    Attributes:
        max_bytes: limit of the artifacts in it together.
        wait_s: how long to wait for another pod that fetches the same artifact.
    """

    folder: Path
    max_bytes: int
    wait_s: float = 1800.0

    def copy(self, order: Order, target: Path) -> None:
        """Make `target` a copy of the artifact from the cache; fetches into the cache first on a miss.

        Raises:
            CacheUnusableError: its disk is full or fails, the artifact is too large for it, or another pod takes too
                long.
            ModelError: the artifact is not available.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for _ in range(_TURNS):
                if self._copied(order, target):
                    return self._make_room(order.hex, order.say)
                self._fill(order)
        except (OSError, NoRoomError, TooLargeError) as error:
            shutil.rmtree(target.with_name(f"{target.name}-copied"), ignore_errors=True)
            raise CacheUnusableError(str(error)) from error
        raise CacheUnusableError(f"{order.digest} is removed from the cache as often as it is fetched")

    def _copied(self, order: Order, target: Path) -> bool:
        """Copy the artifact on a hit, if its digest still matches."""
        folder = self.folder / order.hex
        if not folder.is_dir():
            return False
        with self._locked(order, fcntl.LOCK_SH):
            if not folder.is_dir():
                return False
            os.utime(folder)
            copy = target.with_name(f"{target.name}-copied")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
        if digest_of_folder(copy) == order.digest:
            copy.rename(target)
            order.say(f"took {order.digest} from the cache")
            return True
        order.say(f"the cache's copy of {order.digest} was changed; removing it and downloading it again")
        shutil.rmtree(copy)
        self._remove(order.hex)
        return False

    def _fill(self, order: Order) -> None:
        with self._locked(order, fcntl.LOCK_EX):
            fetch(order, self.folder, max_bytes=self.max_bytes)

    def _make_room(self, kept: str, say: Say) -> None:
        self._remove_abandoned()
        sizes = {}
        for folder in self.folder.iterdir():
            if not folder.name.startswith("."):
                files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
                sizes[folder.name] = (folder.stat().st_mtime, sum(files))
        total = sum(size for _, size in sizes.values())
        for name in sorted(sizes, key=lambda name: sizes[name][0]):
            if total <= self.max_bytes:
                return
            if name != kept and self._remove(name):
                total -= sizes[name][1]
                say(f"removed sha256:{name} from the cache: least recently used")

    def _remove(self, name: str) -> bool:
        """Remove an artifact unless a pod holds its lock; returns whether it is gone."""
        with self._if_free(name) as is_free:
            if is_free:
                work = self.folder / INCOMING / name
                shutil.rmtree(work, ignore_errors=True)
                work.parent.mkdir(exist_ok=True)
                with contextlib.suppress(FileNotFoundError):  # another pod was first
                    (self.folder / name).rename(work)  # no pod sees it half removed
                shutil.rmtree(work)
            return is_free

    def _remove_abandoned(self) -> None:
        """Remove partial fetches of ended pods that no pod has continued for a day."""
        incoming = self.folder / INCOMING
        for work in list(incoming.iterdir()) if incoming.is_dir() else ():
            with self._if_free(work.name) as is_free:
                if is_free and work.is_dir():
                    changed = max(path.stat().st_mtime for path in (work, *work.rglob("*")))
                    if time.time() - changed > _ABANDONED_AFTER_S:
                        shutil.rmtree(work)

    @contextmanager
    def _if_free(self, name: str) -> Iterator[bool]:
        """Take an artifact's lock exclusively, if it is free."""
        with self._lock_file(name) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    @contextmanager
    def _locked(self, order: Order, kind: int) -> Iterator[None]:
        """Take the artifact's lock; waits for the fetching pod."""
        ends_at, logged_at = time.monotonic() + self.wait_s, 0.0
        with self._lock_file(order.hex) as handle:
            while True:
                try:
                    fcntl.flock(handle, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    now = time.monotonic()
                    if now > ends_at:
                        raise CacheUnusableError(
                            f"another pod holds {order.digest} in the cache for more than {self.wait_s:g} s"
                        ) from None
                    if now - logged_at > _LOG_EVERY_S:
                        logged_at = now
                        order.say(f"waiting for another pod, which fetches {order.digest} into the cache")
                    time.sleep(_POLL_S)
            yield

    @contextmanager
    def _lock_file(self, name: str) -> Iterator[int]:
        place = self.folder / _LOCKS / name
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            yield handle
        finally:
            os.close(handle)
