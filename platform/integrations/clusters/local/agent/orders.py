"""Orders of the driver: desired state files of a cluster folder, and the callers' keys, each read when it changed."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from integrations.clusters.base import CallerKeys
from integrations.clusters.local.documents import keys_from_json, order_from_json
from integrations.clusters.local.files import (
    DESIRED_SCHEMA,
    KEYS_SCHEMA,
    BadFileError,
    Layout,
    Order,
    desired_files_locked,
    key_of,
    read_json,
)

log = logging.getLogger(__name__)

Key = tuple[str, str]  # namespace and service

_CLOCK_TICK_NS = 10_000_000
"""Two writes within one tick of the file system's clock have the same time."""


class Orders:
    """Reads the folder; use it from one thread."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._seen: dict[str, tuple[int, int]] = {}
        self._keys_seen: tuple[int, int] | None = None
        self.keys = CallerKeys()

    def changed(self) -> Iterator[tuple[Key, Order | BadFileError | None]]:
        """Yield changes since the last call: an order, why it is invalid, or None where its file is gone."""
        found = self._found()
        for name in [each for each in sorted(found) if self._seen.get(each) != found[each]]:
            with suppress(FileNotFoundError):
                order = self._read(self._layout.desired / name)
                self._seen[name] = found[name]
                yield key_of(Path(name)), order
        for name in self._seen.keys() - found.keys():  # removed by hand
            del self._seen[name]
            yield key_of(Path(name)), None

    def read_keys(self) -> None:
        """Read the callers' keys into `keys`, if they have changed; an unreadable file changes nothing."""
        try:
            stat = self._layout.keys.stat()
            seen = stat.st_mtime_ns, stat.st_ino
            if seen != self._keys_seen:
                self._keys_seen = seen
                self.keys = keys_from_json(read_json(self._layout.keys, KEYS_SCHEMA))
        except FileNotFoundError:
            return
        except (BadFileError, OSError) as error:
            log.error("%s is ignored, and the keys of before stay in force: %s", self._layout.keys.name, error)

    def forget(self, key: Key) -> None:
        """Remove the order to delete a service; one that came meanwhile is found by the next call of `changed`."""
        place = self._layout.desired_file(*key)
        self._seen.pop(place.name, None)
        with suppress(FileNotFoundError, BadFileError), desired_files_locked(self._layout):
            if order_from_json(read_json(place, DESIRED_SCHEMA)).deleted:
                place.unlink()

    async def follow(self, changed: Callable[[], None], *, every_s: float) -> None:
        """Call `changed` after each written order, which changes the folder, and after each change of the keys."""
        seen = 0, 0
        while True:
            written = _written_ns(self._layout.desired), _written_ns(self._layout.keys)
            if written != seen or time.time_ns() - max(written) < _CLOCK_TICK_NS:
                seen = written
                changed()
            await asyncio.sleep(every_s)

    def _found(self) -> dict[str, tuple[int, int]]:
        found = {}
        with suppress(FileNotFoundError), os.scandir(self._layout.desired) as files:
            for file in files:
                if file.name.endswith(".json") and not file.name.startswith("."):
                    with suppress(FileNotFoundError):
                        stat = file.stat()
                        found[file.name] = (stat.st_mtime_ns, stat.st_ino)
        return found

    def _read(self, path: Path) -> Order | BadFileError:
        key = key_of(path)
        try:
            order = order_from_json(read_json(path, DESIRED_SCHEMA))
            if (order.desired.namespace, order.desired.service) != key:
                raise BadFileError(f"it is of {order.desired.namespace}/{order.desired.service}")
        except BadFileError as error:
            return error
        return order


def _written_ns(path: Path) -> int:
    """Return when it was last written; 0 where it is absent."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
