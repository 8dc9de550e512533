"""Recorded payloads of taps, as files that wait for their consumer; the same for every kind of cluster.

<folder of a service>/<revision>/<replica>/*.jsonl   events, whole files that never change, names sort by time
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from integrations.clusters.base import Exchange

log = logging.getLogger(__name__)

MAX_REPLICA_BYTES = 64 << 20
MAX_CALL_BYTES = 16 << 20
KEPT_S = 60.0
"""How long records are kept for a consumer once recording has ended."""


def take(folder: Path, cursor: str) -> tuple[list[Exchange], str]:
    """Return exchanges from a service's folder as `ClusterDriver.exchanges` does; raises OSError.

    The cursor holds the last file taken of each replica.
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


def exchange_of(
    answer: Mapping[str, Any], revision: str, request: Mapping[str, Any], at: float, *, took_ms: float | None = None
) -> Exchange:
    """Return the exchange that the event of an answer completes; raises KeyError."""
    return Exchange(
        request_id=answer["requestid"],
        revision=revision,
        model_version="" if "errorcode" in answer else answer.get("modelversion", ""),
        at=at,
        request=request,
        response=answer["data"],
        error_code=answer.get("errorcode", ""),
        took_ms=took_ms,
    )


def _exchanges(content: bytes, revision: str) -> Iterator[Exchange]:
    """Yield the requests in a file with their first answers; a request and its first answer are always in one file."""
    requests = {}
    for event in _events(content, revision):
        try:
            request_id, _, number = event["id"].rpartition(":")
            if number == "0":
                requests[request_id] = event
            elif number == "1" and request_id in requests:
                asked = requests.pop(request_id)
                if not (isinstance(asked["data"], dict) and isinstance(event["data"], dict)):
                    raise TypeError("its data is no object")
                at, answered_at = (datetime.fromisoformat(each["time"]) for each in (asked, event))
                took_ms = max(0.0, (answered_at - at) / timedelta(milliseconds=1))
                yield exchange_of(event, revision, asked["data"], at.timestamp(), took_ms=took_ms)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("an event of revision %s is left out, it cannot be read: %s", revision, error)


def _events(content: bytes, revision: str) -> Iterator[dict[str, Any]]:
    """Yield the events in a file: each of its lines has one, or a list of them."""
    for line in content.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            log.warning("events of revision %s are left out, they cannot be read: %s", revision, error)
            continue
        yield from found if isinstance(found, list) else [found]
