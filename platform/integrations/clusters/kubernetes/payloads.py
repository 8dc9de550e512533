"""Payload store of a cluster's taps, on the control plane's machine (`clusters/payloads.py` reads it).

<root>/<namespace>.<service>/<revision>/               there while the revision is tapped, and for a minute after
<root>/<namespace>.<service>/<revision>/off            since when it is not tapped any more
<root>/<namespace>.<service>/<revision>/<pod>/*.jsonl  events

Everything is readable by its owner only: it holds client requests. Web processes write, workers read and sweep: they
need the same folder.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from common.errors import Conflict, Unavailable
from integrations.clusters import payloads
from integrations.clusters.base import DesiredRevision, Exchange
from integrations.clusters.payloads import KEPT_S, MAX_REPLICA_BYTES

MAX_SERVICE_BYTES = 512 << 20


class Payloads:
    """The folder `root` of one cluster. Raises Unavailable where it cannot be read or written."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def switch(self, namespace: str, service: str, revisions: Iterable[DesiredRevision], now: float) -> None:
        """Accept payloads of tapped revisions from now on, and drop those of others a minute after their tap ended.

        `now` is Unix seconds.
        """
        folder = self._of(namespace, service)
        tapped = {revision.name for revision in revisions if revision.tap is not None}
        try:
            for name in tapped:
                for each in (self._root.parent, self._root, folder, folder / name):
                    each.mkdir(mode=0o700, exist_ok=True)
                (folder / name / "off").unlink(missing_ok=True)
            for revision in folder.glob("*"):
                if revision.name not in tapped:
                    _leave(revision, now)
            if not tapped:
                with suppress(OSError):  # not empty, or not there
                    folder.rmdir()
        except OSError as error:
            raise _unavailable(error) from error

    def keep(self, namespace: str, service: str, revision: str, pod: str, events: bytes) -> None:
        """Keep events of a pod, as a file written atomically; raises Conflict where its revision is not tapped."""
        folder = self._of(namespace, service) / revision
        if not folder.is_dir() or (folder / "off").exists():
            raise Conflict(f"nothing of {revision} is recorded now; what pod {pod} brings is dropped")
        digest = hashlib.sha256(events).hexdigest()[:16]
        own = folder / pod
        try:
            own.mkdir(mode=0o700, exist_ok=True)
            if any(own.glob(f"*-{digest}.jsonl")):
                return  # sent again since the answer was lost
            hidden = own / f".{digest}-{os.getpid()}"
            # Between values a line's end is a blank; inside of a text JSON has none.
            hidden.write_bytes(events.replace(b"\n", b" ") + b"\n")
            hidden.replace(own / f"{time.time_ns():020}-{digest}.jsonl")
            _trim(own.glob("*.jsonl"), MAX_REPLICA_BYTES)
            _trim(folder.parent.glob("*/*/*.jsonl"), MAX_SERVICE_BYTES)
        except OSError as error:
            raise _unavailable(error) from error

    def take(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return exchanges as `ClusterDriver.exchanges` does."""
        try:
            return payloads.take(self._of(namespace, service), cursor)
        except OSError as error:
            raise _unavailable(error) from error

    def remove(self, namespace: str, service: str) -> None:
        """Drop everything of a service."""
        shutil.rmtree(self._of(namespace, service), ignore_errors=True)

    def _of(self, namespace: str, service: str) -> Path:
        return self._root / f"{namespace}.{service}"


def _leave(revision: Path, now: float) -> None:
    """Mark a revision as no longer tapped, and drop its payloads after a minute."""
    mark = revision / "off"
    with suppress(FileNotFoundError):  # another worker dropped it
        if not mark.exists():
            mark.touch(mode=0o600)
            os.utime(mark, (now, now))
        elif now - mark.stat().st_mtime >= KEPT_S:
            shutil.rmtree(revision, ignore_errors=True)


def _trim(files: Iterable[Path], max_bytes: int) -> None:
    """Drop the oldest files, down to the newest one, until the rest fits the byte limit."""
    held = 0
    for number, path in enumerate(sorted(files, key=lambda path: path.name, reverse=True)):
        with suppress(FileNotFoundError):  # it was taken meanwhile
            held += path.stat().st_size
            if number and held > max_bytes:
                path.unlink()


def _unavailable(error: OSError) -> Unavailable:
    return Unavailable(f"what taps recorded cannot be read or written: {error.filename}: {error.strerror or error}")
