"""What the taps of replicas recorded: how the agent switches them, and how the driver takes away what they wrote.

payloads/<namespace>.<service>/<revision>/share             agent -> replicas: how much to record; no file, nothing
payloads/<namespace>.<service>/<revision>/<index>/*.jsonl   replica -> driver: events, whole files, names sort by time

Everything is readable by its owner only: it holds what clients sent. A replica keeps a bounded number of bytes.
"""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from integrations.clusters.base import Exchange, Tap
from integrations.clusters.local.files import write_text

log = logging.getLogger(__name__)

MAX_REPLICA_BYTES = 64 << 20
MAX_CALL_BYTES = 16 << 20
KEPT_S = 60.0
"""For so long what was recorded waits for somebody to take it, once nothing is recorded any more."""


class RevisionTap:
    """The taps of one revision's replicas, as the agent has them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._share = folder / "share"
        self._tap: Tap | None = None
        self._off_since: float | None = None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._share.unlink(missing_ok=True)

    def flags(self, index: int) -> list[str]:
        """Return what a replica is started with: it can be tapped at any time, and that costs nothing until then."""
        return [
            f"--payload-tap={(self._folder / str(index)).as_uri()}/",
            f"--payload-tap-share-file={self._share}",
            f"--payload-tap-max-file-bytes={MAX_REPLICA_BYTES}",
        ]

    def switch(self, tap: Tap | None, now: float) -> None:
        """Have the replicas record what `tap` says; `now` is seconds of a clock that only goes forward."""
        if tap != self._tap:
            if tap is None:
                self._share.unlink(missing_ok=True)
                self._off_since = now
            else:
                write_text(self._share, f"{tap.share_percent / 100}\n")
            self._tap = tap
        elif tap is None and self._off_since is not None and now - self._off_since >= KEPT_S:
            for path in self._folder.glob("*/*.jsonl"):
                path.unlink(missing_ok=True)
            self._off_since = None

    def remove(self) -> None:
        """Drop everything, once no replica runs any more."""
        shutil.rmtree(self._folder, ignore_errors=True)


def take(folder: Path, cursor: str) -> tuple[list[Exchange], str]:
    """Return exchanges from a service's folder as `ClusterDriver.exchanges` does; raises OSError.

    The cursor says of each replica which file was the last to be taken.
    """
    before = json.loads(cursor) if cursor else {}
    taken = {replica: name for replica, name in before.items() if (folder / replica).is_dir()}
    found: list[Exchange] = []
    size = 0
    for path in sorted(folder.glob("*/*/*.jsonl"), key=lambda path: path.name):
        replica = path.parent.relative_to(folder).as_posix()
        if path.name <= before.get(replica, ""):
            path.unlink(missing_ok=True)
            continue
        with suppress(FileNotFoundError):  # dropped meanwhile, since too much waited
            content = path.read_bytes()
            if size and size + len(content) > MAX_CALL_BYTES:
                break
            size += len(content)
            found += _exchanges(content, path.parts[-3])
            taken[replica] = path.name
    return found, json.dumps(taken, sort_keys=True) if taken else ""


def exchange_of(answer: Mapping[str, Any], revision: str, request: Mapping[str, Any], at: float) -> Exchange:
    """Return the exchange that the event of an answer completes; raises KeyError."""
    return Exchange(
        request_id=answer["requestid"],
        revision=revision,
        model_version="" if "errorcode" in answer else answer.get("modelversion", ""),
        at=at,
        request=request,
        response=answer["data"],
        error_code=answer.get("errorcode", ""),
    )


def _exchanges(content: bytes, revision: str) -> Iterator[Exchange]:
    """Yield the requests in a file with their first answers; a request and its first answer are always in one file."""
    requests = {}
    for line in content.splitlines():
        try:
            event = json.loads(line)
            request_id, _, number = event["id"].rpartition(":")
            if number == "0":
                requests[request_id] = event
            elif number == "1" and request_id in requests:
                asked = requests.pop(request_id)
                at = datetime.fromisoformat(asked["time"]).timestamp()
                yield exchange_of(event, revision, asked["data"], at)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("an event of revision %s is left out, it cannot be read: %s", revision, error)
