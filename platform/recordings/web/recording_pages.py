"""Pages of a recording and of a replay as values, as `deployments.web.pages` has those of services."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from common.errors import Unavailable
from deployments.web.rollouts.comparison_panel import compared
from events.web.live_updates import Page
from jobs.domain.attempts import Status
from recordings.models import Recording, Replay
from recordings.reconcile import payload_files
from recordings.selectors.recordings import recording_get, recording_marks, recordings_newest
from recordings.selectors.replays import replay_get, replay_marks, replay_summary, replays_newest
from recordings.services.replays import MAX_CONCURRENT

RECORDING, REPLAY = "deployments/_recording_state.html", "deployments/_replay_state.html"
REQUESTS_SHOWN = 50
_ON_SERVICE_PAGE = 5


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A recorded request without its content; `error` is gRPC's name of it in lower case, empty without one.

    `took_ms` is None for recordings from before it was recorded.
    """

    at: datetime
    request_id: str
    revision: str
    error: str
    took_ms: float | None


@dataclass(frozen=True, slots=True)
class RequestLog:
    """The newest requests of a recording; `problem` says why they cannot be read."""

    rows: list[RequestRow]
    problem: str = ""


def of_service_page(service_id: int) -> Mapping[str, Any]:
    """Return the context of the section of recordings on a service's page."""
    return {
        "recordings": recordings_newest(service_id=service_id, limit=_ON_SERVICE_PAGE),
        "replays": replays_newest(service_id=service_id, limit=_ON_SERVICE_PAGE),
    }


def recording_page(namespace: str, name: str, recording_id: int) -> Page:
    """Return the page of one recording; raises NotFound."""
    # First: a change between the reads is sent again, not lost.
    cursor = _cursor(recording_marks([recording_id]).of.get(recording_id))
    row = recording_get(namespace=namespace, name=name, recording_id=recording_id)
    return Page(
        template="deployments/recording_detail.html",
        fragments=(RECORDING,),
        cursor=cursor,
        context={
            "service": row.service,
            "recording": row,
            "is_going": row.ended_at is None,
            "full_percent": full_percent(row),
        },
    )


def replay_page(namespace: str, name: str, replay_id: int) -> Page:
    """Return the page of one replay; raises NotFound."""
    cursor = _cursor(replay_marks([replay_id]).of.get(replay_id))
    row = replay_get(namespace=namespace, name=name, replay_id=replay_id)
    return Page(
        template="deployments/replay_detail.html",
        fragments=(REPLAY,),
        cursor=cursor,
        context={
            "service": row.service,
            "replay": row,
            "label": f"replay {row.pk}",
            "number": str(row.model_version.number),
            "is_going": row.status == Status.PENDING,
            "stage": _stage(row),
            "done_percent": 100 * row.done // max(1, row.total),
            "comparison": compared(replay_summary(row)) if row.status == Status.DONE else None,
        },
    )


def request_log(row: Recording) -> RequestLog:
    """Return the newest requests of a recording, newest first: time, outcome and latency, without their content."""
    try:
        found = payload_files.newest(row.pk, length=row.bytes, most=REQUESTS_SHOWN)
    except Unavailable as error:
        return RequestLog([], error.message)
    rows = [
        RequestRow(
            datetime.fromtimestamp(each.at, tz=UTC),
            each.request_id,
            each.revision,
            _words(each.error_code),
            each.took_ms,
        )
        for each in found
    ]
    return RequestLog(sorted(rows, key=lambda each: each.at, reverse=True))


def full_percent(row: Recording) -> int:
    """Return the used share of a recording's limits, by the nearer one."""
    return min(100, max(100 * row.requests // row.max_requests, 100 * row.bytes // row.max_bytes))


def _stage(row: Replay) -> str:
    if row.claim is not None:
        return "the version is loaded" if not row.done else "the version answers what was recorded; no client sees it"
    again = f" after it broke off: {row.reason}" if row.reason else ""
    return f"it waits for its turn{again}; {MAX_CONCURRENT} replays are made at a time"


def _words(error_code: str) -> str:
    return error_code.replace("_", " ").lower()


def _cursor(mark: tuple[int, int] | None) -> int:
    return zlib.crc32(repr(mark).encode())
