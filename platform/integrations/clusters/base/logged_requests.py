"""Requests as entries of a gateway's access log say them. Pure.

Envoy escapes what clients send. What is read is checked nevertheless: a file may be cut off, or somebody else's. Rows
are what a replica says, whose model may be hostile: they count only as far as the request's bytes could hold so many,
and a wrong text is one row.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

_INFER = ("/infer", "/generate", "/generate_stream", ":predict", "/ModelInfer", "/ModelStreamInfer")
_ROWS = re.compile("[0-9]{1,20}")
_LONGEST = 150
_MOST = 1 << 53
MOST_ROWS = 10_000_000
"""Most rows of one request that count."""


class BadEntryError(ValueError):
    """An entry is not one of the gateway's; the message says why."""


class LoggedRequest(NamedTuple):
    """An inference call; texts are empty where not known, such as the key of a public caller.

    Attributes:
        at: when it began.
        service: `<namespace>/<service>`; a preview is a service of its own.
        revision: empty for requests that the gateway refused.
        key, team, token_id, user: of the caller, as the gateway verified them.
        failed: it was answered with a status of 400 and more, or a gRPC status other than OK, or not at all.
        rows: none of one that failed; one where a replica does not say it.
        model_us: microseconds from the first byte sent to a replica to the last one of its answer.
    """

    at: datetime
    service: str
    revision: str
    key: str
    team: str
    token_id: str
    user: str
    failed: bool
    rows: int
    bytes_in: int
    bytes_out: int
    model_us: int


def read_line(line: bytes) -> LoggedRequest | None:
    """Return the request of a line of JSON, as `request_of`; raises BadEntryError."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadEntryError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(said, dict):
        raise BadEntryError(f"not an object: {line[:80]!r}")
    return request_of(said, _revision(text(said, "upstream")))


def request_of(said: Mapping[str, object], revision: str) -> LoggedRequest | None:
    """Return the request of an entry; None for calls of health and metadata, and those of no service.

    Args:
        said: by the names of `integrations.clusters.local.envoy.access_log`.
        revision: the one that it was sent to, or would have been.

    Raises:
        BadEntryError: a value is none that the gateway writes.
    """
    at = time_of(said)
    service = text(said, "service")
    if not service.partition("/")[2] or not str(said.get("path")).endswith(_INFER):
        return None
    bytes_in, bytes_out, model_us = (_number(said, name) for name in ("bytes_in", "bytes_out", "model_us"))
    # Lines of an Envoy that a former release started have no attempts.
    reached = said.get("attempts") != 0 if "attempts" in said else bool(model_us)
    failed = not 0 < _number(said, "status") < 400 or _number(said, "grpc_status") != 0
    return LoggedRequest(
        at,
        service,
        revision if reached else "",
        text(said, "key"),
        text(said, "team"),
        text(said, "token_id"),
        text(said, "user"),
        failed,
        0 if failed else _rows(said, bytes_in),
        bytes_in,
        bytes_out,
        model_us,
    )


def time_of(said: Mapping[str, object]) -> datetime:
    """Return when the request of an entry began; raises BadEntryError."""
    try:
        at = datetime.fromisoformat(text(said, "time"))
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadEntryError(
            f"time is {str(said.get('time'))[:40]!r}; expected one such as 2026-01-31T12:00:00Z"
        ) from error


def _rows(said: Mapping[str, object], bytes_in: int) -> int:
    """Return the rows of a request; a row takes a byte at least."""
    rows = said.get("rows") or said.get("grpc_rows")
    if not isinstance(rows, str) or not _ROWS.fullmatch(rows):
        return 1
    return max(1, min(int(rows), MOST_ROWS, bytes_in))


def _revision(upstream: str) -> str:
    """Return the revision in the name of an Envoy cluster, `<namespace>/<revision>/<use>`."""
    parts = upstream.split("/")
    return parts[1] if len(parts) == 3 else ""


def text(said: Mapping[str, object], name: str) -> str:
    """Return a text of an entry, empty where it has none; raises BadEntryError."""
    found = said.get(name)
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > _LONGEST or not found.isprintable():
        raise BadEntryError(
            f"{name} is {str(found)[:40]!r}; expected a text of at most {_LONGEST} printable characters"
        )
    return found


def _number(said: Mapping[str, object], name: str) -> int:
    found = said.get(name)
    if found is None:
        return 0
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _MOST:
        raise BadEntryError(f"{name} is {str(found)[:40]!r}; expected a whole number")
    return found
