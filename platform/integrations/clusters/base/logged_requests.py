"""Requests as lines of a gateway's access log say them. Pure.

Envoy escapes what clients send. What is read is checked nevertheless: a file may be cut off, or somebody else's. Rows
are what a replica says, whose model may be hostile: they count only as far as the request's bytes could hold so many,
and a wrong text is one row.
"""

import json
import re
from datetime import UTC, datetime
from typing import NamedTuple

_INFER = ("/infer", "/generate", "/generate_stream", ":predict", "/ModelInfer", "/ModelStreamInfer")
_ROWS = re.compile("[0-9]{1,20}")
_LONGEST = 150
_MOST = 1 << 53
MOST_ROWS = 10_000_000
"""Most rows of one request that count."""


class BadLineError(ValueError):
    """A line is not one of the gateway's; the message says why."""


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
    """Return the request of a line; None for calls of health and metadata, and those of no service.

    Raises:
        BadLineError: it is not the gateway's.
    """
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLineError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(said, dict):
        raise BadLineError(f"not an object: {line[:80]!r}")
    at = _time(said)
    service = _text(said, "service")
    if not service.partition("/")[2] or not str(said.get("path")).endswith(_INFER):
        return None
    bytes_in, bytes_out, model_us = (_number(said, name) for name in ("bytes_in", "bytes_out", "model_us"))
    # Lines of an Envoy that a former release started have no attempts.
    reached = said.get("attempts") != 0 if "attempts" in said else bool(model_us)
    failed = not 0 < _number(said, "status") < 400 or _number(said, "grpc_status") != 0
    return LoggedRequest(
        at,
        service,
        _revision(_text(said, "upstream")) if reached else "",
        _text(said, "key"),
        _text(said, "team"),
        _text(said, "token_id"),
        _text(said, "user"),
        failed,
        0 if failed else _rows(said, bytes_in),
        bytes_in,
        bytes_out,
        model_us,
    )


def _time(said: dict[str, object]) -> datetime:
    try:
        at = datetime.fromisoformat(_text(said, "time"))
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadLineError(
            f"time is {str(said.get('time'))[:40]!r}; expected one such as 2026-01-31T12:00:00Z"
        ) from error


def _rows(said: dict[str, object], bytes_in: int) -> int:
    """Return the rows of a request; a row takes a byte at least."""
    text = said.get("rows") or said.get("grpc_rows")
    if not isinstance(text, str) or not _ROWS.fullmatch(text):
        return 1
    return max(1, min(int(text), MOST_ROWS, bytes_in))


def _revision(upstream: str) -> str:
    """Return the revision in the name of an Envoy cluster, `<namespace>/<revision>/<use>`."""
    parts = upstream.split("/")
    return parts[1] if len(parts) == 3 else ""


def _text(said: dict[str, object], name: str) -> str:
    found = said.get(name)
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > _LONGEST or not found.isprintable():
        raise BadLineError(f"{name} is {str(found)[:40]!r}; expected a text of at most {_LONGEST} printable characters")
    return found


def _number(said: dict[str, object], name: str) -> int:
    found = said.get(name)
    if found is None:
        return 0
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _MOST:
        raise BadLineError(f"{name} is {str(found)[:40]!r}; expected a whole number")
    return found
