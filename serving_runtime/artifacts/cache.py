"""Artifact cache shared by several pods, on their volume or on their node; least recently used artifacts are evicted.

    <cache>/<hex>              an artifact; its time says when it was wanted last
    <cache>/.incoming/         what is being fetched, and what is being removed
    <cache>/.locks/<hex>       held by who fetches (alone) or copies (together); a pod that is killed lets go of it

One pod fetches, the others wait for it and copy. After each fetch the least recently used artifacts are removed until
the rest fits the cache's bytes, and half of them where its disk is full before; one that is being copied stays.

Other pods may write to the folder, so nothing in it is trusted: only plain files are copied, without following links,
and the digest is checked of the copy, which the other pods do not reach.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.artifacts.download import NoRoomError, TooLargeError
from serving_runtime.artifacts.fetch_artifact import INCOMING, Order, fetch
from serving_runtime.artifacts.unpack import digest_of_folder

_LOCKS = ".locks"
_CHUNK_BYTES = 8 << 20
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
                    self._make_room(order, self.max_bytes)
                    return
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
            _copy_files(folder, copy)
        if digest_of_folder(copy) == order.digest:
            copy.rename(target)
            order.say(f"took {order.digest} from the cache")
            return True
        order.say(f"the cache's copy of {order.digest} was changed; removing it and downloading it again")
        shutil.rmtree(copy)
        self._remove(order.hex)
        return False

    def _fill(self, order: Order) -> None:
        try:
            with self._locked(order, fcntl.LOCK_EX):
                fetch(order, self.folder, max_bytes=self.max_bytes)
        except NoRoomError:
            if not self._make_room(order, self._bytes() // 2):
                raise

    def _bytes(self) -> int:
        return sum(size for _, size in self._artifacts().values())

    def _artifacts(self) -> dict[str, tuple[float, int]]:
        """Return when each artifact was wanted last, and its bytes."""
        found = {}
        for folder in self.folder.iterdir():
            if not folder.name.startswith("."):
                files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
                found[folder.name] = (folder.stat().st_mtime, sum(files))
        return found

    def _make_room(self, order: Order, most: int) -> bool:
        """Remove the least recently used artifacts besides this one until `most` bytes are left; whether any was."""
        self._remove_abandoned()
        there = self._artifacts()
        total, is_changed = sum(size for _, size in there.values()), False
        for name in sorted(there, key=lambda name: there[name][0]):
            if total <= most:
                break
            if name != order.hex and self._remove(name):
                total -= there[name][1]
                is_changed = True
                order.say(f"removed sha256:{name} from the cache: least recently used")
        return is_changed

    def _remove(self, name: str) -> bool:
        """Remove an artifact unless a pod holds its lock; returns whether it is gone."""
        with self._if_free(name) as is_free:
            if is_free:
                work = self.folder / INCOMING / name
                _discard(work)
                work.parent.mkdir(exist_ok=True)
                with contextlib.suppress(FileNotFoundError):  # another pod was first
                    (self.folder / name).rename(work)  # no pod sees it half removed
                _discard(work)
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


def _discard(place: Path) -> None:
    """Remove a folder, or a link or a file in its place; nothing where it is gone."""
    if place.is_symlink() or place.is_file():
        place.unlink(missing_ok=True)
    elif place.exists():
        shutil.rmtree(place)


def _copy_files(source: Path, target: Path) -> None:
    """Copy the plain files of a folder; links, which could lead out of it, and devices are left out."""
    target.mkdir(parents=True)
    for above, folders, names in os.walk(source):
        place = target / Path(above).relative_to(source)
        for name in folders:
            (place / name).mkdir()
        for name in names:
            # Another pod may replace a file at any time: what was opened is looked at, and no pipe blocks the opening.
            try:
                handle = os.open(Path(above, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    continue
                raise
            with os.fdopen(handle, "rb") as content:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    with (place / name).open("wb") as copy:
                        shutil.copyfileobj(content, copy, _CHUNK_BYTES)
