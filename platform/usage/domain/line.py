"""Sums of the gateway's logged requests by hour and caller. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from integrations.clusters.base import CONSOLE
from integrations.clusters.base.logged_requests import BadEntryError, LoggedRequest, read_line

_NEVER = datetime.min.replace(tzinfo=UTC)


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

    def add(self, request: LoggedRequest) -> None:
        self.requests += 1
        self.errors += request.failed
        self.rows += request.rows
        self.bytes_in += request.bytes_in
        self.bytes_out += request.bytes_out
        self.model_us += request.model_us
        self.last_at = max(self.last_at, request.at)

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

    def add(self, request: LoggedRequest | None) -> None:
        """Count an entry; None is one that says no inference call."""
        self.lines += 1
        if request is not None:
            self.sums.setdefault(_group(request), Sums()).add(request)

    def skip(self, error: BadEntryError) -> None:
        """Count an entry that is not the gateway's."""
        self.bad += 1
        self.why = self.why or str(error)


def read_lines(lines: Iterable[bytes]) -> Read:
    """Return the sums of lines; bad ones are counted and skipped."""
    read = Read()
    for line in lines:
        try:
            read.add(read_line(line))
        except BadEntryError as error:
            read.skip(error)
    return read


def _group(request: LoggedRequest) -> Group:
    namespace, _, service = request.service.partition("/")
    return Group(
        request.at.replace(minute=0, second=0, microsecond=0),
        namespace,
        service,
        request.revision,
        request.team,
        request.key,
        "" if request.key == CONSOLE else request.token_id,  # each view of the console has a token of its own
        request.user,
    )
