"""Entries of a gateway's access log, and their sums by hour and caller. Pure.

On one machine an entry is a line of JSON; `record.py` has those of Envoy Gateway. Envoy escapes what clients send. What
is read is checked nevertheless: a file may be cut off, or somebody else's. Rows are what a replica says, whose model
may be hostile: they count only as far as the request's bytes could hold so many, and a wrong text is one row.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from integrations.clusters.base import CONSOLE

_INFER = ("/infer", "/generate", "/generate_stream", ":predict", "/ModelInfer", "/ModelStreamInfer")
_ROWS = re.compile("[0-9]{1,20}")
_LONGEST = 150
_MOST = 1 << 53
MOST_ROWS = 10_000_000
"""Most rows of one request that count."""
_NEVER = datetime.min.replace(tzinfo=UTC)


class BadEntryError(ValueError):
    """An entry is not one of the gateway's; the message says why."""


@dataclass(frozen=True, slots=True)
class Group:
    """What requests are summed by; texts are empty where not known, such as the key of a public caller.

    Attributes:
        revision: empty for requests that the gateway refused.
    """

    hour: datetime
    namespace: str
    service: str
    revision: str
    team: str
    key: str
    token_id: str
    user: str


@dataclass(slots=True)
class Sums:
    """Sums of requests.

    Attributes:
        errors: those answered with a status of 400 and more, or a gRPC status other than OK, or not at all.
        rows: of those that are no errors; one for each where a replica does not say it.
        model_us: microseconds from the first byte sent to a replica to the last one of its answer.
        last_at: when the newest request began.
    """

    requests: int = 0
    errors: int = 0
    rows: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    model_us: int = 0
    last_at: datetime = _NEVER

    def include(self, other: "Sums") -> None:
        """Add the sums of other requests."""
        for name in ("requests", "errors", "rows", "bytes_in", "bytes_out", "model_us"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.last_at = max(self.last_at, other.last_at)


@dataclass(slots=True)
class Read:
    """What a piece of a log says.

    Attributes:
        lines: entries that are the gateway's, whether they are counted or not.
        bad: entries that are not; `why` is of the first.
    """

    sums: dict[Group, Sums] = field(default_factory=dict)
    lines: int = 0
    bad: int = 0
    why: str = ""


def read_lines(lines: Iterable[bytes]) -> Read:
    """Return the sums of lines; bad ones are counted and skipped."""
    read = Read()
    for line in lines:
        try:
            add(read.sums, said := _parsed(line), _revision(text(said, "upstream")))
            read.lines += 1
        except BadEntryError as error:
            read.bad += 1
            read.why = read.why or str(error)
    return read


def _parsed(line: bytes) -> Mapping[str, object]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadEntryError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(said, dict):
        raise BadEntryError(f"not an object: {line[:80]!r}")
    return said


def add(sums: dict[Group, Sums], said: Mapping[str, object], revision: str) -> None:
    """Add one entry; calls of health and metadata, and those of no service, are not counted.

    Args:
        said: what the gateway says, by the names of `integrations.clusters.local.envoy.access_log`.
        revision: the one that it was sent to, or would have been.

    Raises:
        BadEntryError: a value is none that the gateway writes.
    """
    at = time_of(said)
    namespace, _, service = text(said, "service").partition("/")
    if not service or not str(said.get("path")).endswith(_INFER):
        return
    key = text(said, "key")
    counts = {name: _number(said, name) for name in ("bytes_in", "bytes_out", "model_us")}
    # Lines of an Envoy that a former release started have no attempts.
    reached = said.get("attempts") != 0 if "attempts" in said else bool(counts["model_us"])
    group = Group(
        at.replace(minute=0, second=0, microsecond=0),
        namespace,
        service,
        revision if reached else "",
        text(said, "team"),
        key,
        "" if key == CONSOLE else text(said, "token_id"),  # each view of the console has a token of its own
        text(said, "user"),
    )
    failed = not 0 < _number(said, "status") < 400 or _number(said, "grpc_status") != 0
    added = sums.setdefault(group, Sums())
    added.requests += 1
    added.errors += failed
    added.rows += 0 if failed else _rows(said, counts["bytes_in"])
    for name, count in counts.items():
        setattr(added, name, getattr(added, name) + count)
    added.last_at = max(added.last_at, at)


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
