"""Artifact cache of one fetcher: folders by digest; the least recently used leave, held ones stay.

    <cache>/artifacts/<hex>/                   an artifact, there by one rename after its digest was checked
    <cache>/artifacts/.incoming/               what is being received; removed at the start
    <cache>/models/<hex>/<identity>/<service>/ a model folder of it, of hard links, with its configuration

Only the fetcher writes here; runtimes read. Lives on the fetcher's event loop, and its slow work in threads.
"""

import contextlib
import hashlib
import os
import shutil
from collections import Counter, OrderedDict
from pathlib import Path

from serving_runtime.artifacts import layout
from serving_runtime.artifacts.download import NoRoomError
from serving_runtime.artifacts.fetch_artifact import INCOMING, Order, fetch
from serving_runtime.common.errors import Unsupported
from serving_runtime.pools.catalog import Version
from serving_runtime.pools.names import VersionKey
from serving_runtime.shared.model_files import ensemble_in


class ArtifactCache:
    """Folders of artifacts, and the model folders made of them.

    Attributes:
        max_bytes: limit of the artifacts together, without those that are being received.
        used_bytes: what they take.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self._artifacts = folder.absolute() / "artifacts"
        self._models = folder.absolute() / "models"
        self._sizes: OrderedDict[str, int] = OrderedDict()  # least recently used first
        self._holds: Counter[str] = Counter()
        self._removed = 0

    def open(self) -> None:
        """Take over what an earlier fetcher left: whole artifacts stay, parts are removed. Raises OSError."""
        self._artifacts.mkdir(parents=True, exist_ok=True)
        self._models.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._artifacts / INCOMING, ignore_errors=True)
        found = [entry for entry in self._artifacts.iterdir() if entry.is_dir() and not entry.is_symlink()]
        for entry in sorted(found, key=lambda entry: entry.stat().st_mtime_ns):
            self._add(entry.name, _bytes(entry))
        for left in list(self._models.iterdir()):
            if left.name not in self._sizes:
                shutil.rmtree(left, ignore_errors=True)
            else:
                for part in left.glob(".*"):  # a layout that was interrupted
                    shutil.rmtree(part, ignore_errors=True)

    def __contains__(self, digest_hex: str) -> bool:
        return digest_hex in self._sizes

    def receive(self, order: Order) -> tuple[str, int]:
        """Fetch an artifact, in a thread; returns its folder's name and bytes for `take`.

        Raises ModelError, and TooLargeError for one that never fits.
        """
        folder = fetch(order, self._artifacts, max_bytes=self.max_bytes)
        return order.hex, _bytes(folder)

    def take(self, digest_hex: str, size_bytes: int) -> list[Path]:
        """Count a received artifact as used now, and return the folders that leave for it, to be removed.

        Raises NoRoomError where all others are held and it does not fit beside them; it leaves itself then.
        """
        self._add(digest_hex, size_bytes)
        leaving: list[str] = []
        excess = self.used_bytes - self.max_bytes
        for name, size in self._sizes.items():
            if excess <= 0:
                break
            if name != digest_hex and not self._holds[name]:
                leaving.append(name)
                excess -= size
        if excess > 0:
            leaving = [digest_hex]
        gone = [path for name in leaving for path in self._drop(name)]
        if digest_hex in leaving:
            for path in gone:
                remove(path)
            raise NoRoomError(
                f"the artifact has {size_bytes} bytes, and models in use hold the rest of the cache's "
                f"{self.max_bytes} bytes; raise --cache-max-bytes"
            )
        return gone

    def use(self, digest_hex: str) -> None:
        """Count an artifact as used now."""
        self._sizes.move_to_end(digest_hex)
        with contextlib.suppress(OSError):
            os.utime(self._artifacts / digest_hex)  # for the order after a restart

    def hold(self, digest_hex: str) -> None:
        """Keep an artifact until `release`, once for each call."""
        self._holds[digest_hex] += 1

    def release(self, digest_hex: str) -> None:
        if self._holds[digest_hex] > 1:
            self._holds[digest_hex] -= 1
        else:
            del self._holds[digest_hex]

    def lay_out(self, key: VersionKey, version: Version, *, with_code: bool) -> Path:
        """Return the model folder of a version, in a thread; its artifact is here and held.

        Raises ModelError for a configuration that cannot be used, Unsupported for an ensemble.
        """
        digest_hex = version.digest.removeprefix("sha256:")
        artifact = self._artifacts / digest_hex
        named = hashlib.sha256(f"{key}\0{version.identity}".encode()).hexdigest()[:24]
        place = self._models / digest_hex / named
        if not place.is_dir():
            files = (path.relative_to(artifact).as_posix() for path in artifact.rglob("*") if path.is_file())
            if ensemble_in(files):
                raise Unsupported(
                    f"model '{key}' is an ensemble, whose steps are models that a pool lacks; give the service "
                    "replicas of its own"
                )
            work = place.with_name(f".{named}")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            layout.lay_out(
                artifact,
                work / key.service,
                version=str(key.version),
                config=dict(version.config),
                with_code=with_code,
                copy=os.link,
            )
            work.replace(place)
        return place / key.service

    def _add(self, digest_hex: str, size_bytes: int) -> None:
        self.used_bytes += size_bytes - self._sizes.get(digest_hex, 0)
        self._sizes[digest_hex] = size_bytes
        self._sizes.move_to_end(digest_hex)

    def _drop(self, digest_hex: str) -> list[Path]:
        """Move an artifact aside at once; returns the folders to remove."""
        self.used_bytes -= self._sizes.pop(digest_hex)
        self._removed += 1  # a name of its own: the artifact may be back before its folders are removed
        gone = []
        for kind, folder in (("artifact", self._artifacts), ("models", self._models)):
            aside = self._artifacts / INCOMING / f"removed-{kind}-{self._removed}"
            aside.parent.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # no model folder was made of it
                (folder / digest_hex).rename(aside)
                gone.append(aside)
        return gone


def remove(path: Path) -> None:
    """Remove a folder of the cache; blocks."""
    shutil.rmtree(path, ignore_errors=True)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
