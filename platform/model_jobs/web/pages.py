"""Pages of a build and of a tuning as values, as `deployments.web.pages` has those of services."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from deployments.selectors.trying import reaches_of
from events.web.live_updates import Page
from jobs.domain.attempts import Status
from model_jobs.builds.domain.order import BuildOrder
from model_jobs.builds.selectors import build_get
from model_jobs.models import Build, Tuning
from model_jobs.selectors import build_marks, stage_of, tuning_marks
from model_jobs.tunings.domain.order import TuningOrder
from model_jobs.tunings.domain.plot import drawing_of, points_of
from model_jobs.tunings.selectors import tuning_get

BUILD, TUNING = "deployments/_build_state.html", "deployments/_tuning_state.html"


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A build or tuning with its order in words; `outcome` is its progress or result, empty where it only ended."""

    row: Build | Tuning
    what: str
    outcome: str


def build_rows(rows: Iterable[Build]) -> list[WorkRow]:
    """Return the list rows of builds."""
    return [WorkRow(row, BuildOrder.from_json(row.order).words, _outcome(row)) for row in rows]


def tuning_rows(rows: Iterable[Tuning]) -> list[WorkRow]:
    """Return the list rows of tunings."""
    return [
        WorkRow(row, TuningOrder.from_json(row.order).words, _outcome(row) or _conclusion(row.report)) for row in rows
    ]


def _outcome(row: Build | Tuning) -> str:
    return stage_of(row) if row.status == Status.PENDING else row.reason


def build_page(model: str, number: int, build_id: int) -> Page:
    """Return the page of one build; raises NotFound."""
    # First: a change between the reads is sent again, not lost.
    cursor = work_cursor(build_marks([build_id]).of.get(build_id))
    row = build_get(model=model, number=number, build_id=build_id)
    order = BuildOrder.from_json(row.order)
    return Page(
        template="deployments/build_detail.html",
        fragments=(BUILD,),
        cursor=cursor,
        context={
            "version": row.model_version,
            "build": row,
            "order": order,
            "what": order.words,
            "stage": stage_of(row),
            "is_going": row.status == Status.PENDING,
            "made": sorted(row.report.get("made", {}).items()),
        },
    )


def tuning_page(model: str, number: int, tuning_id: int) -> Page:
    """Return the page of one tuning; raises NotFound."""
    cursor = work_cursor(tuning_marks([tuning_id]).of.get(tuning_id))
    row = tuning_get(model=model, number=number, tuning_id=tuning_id)
    order, report = TuningOrder.from_json(row.order), dict(row.report)
    chosen: dict[str, Any] = report.get("chosen") or {}
    return Page(
        template="deployments/tuning_detail.html",
        fragments=(TUNING,),
        cursor=cursor,
        context={
            "version": row.model_version,
            "tuning": row,
            "order": order,
            "what": order.words,
            "stage": stage_of(row),
            "is_going": row.status == Status.PENDING,
            "spent_percent": round(100 * float(row.progress.get("spent") or 0.0)),
            "best": row.progress.get("best"),
            "conclusion": _conclusion(report),
            "chosen": chosen,
            "config": yaml.safe_dump(chosen["config"], sort_keys=False) if chosen.get("config") else "",
            "points": points_of(report),
            "drawing": drawing_of(report, order.max_latency_p99_ms),
            "failed": report.get("failed") or (),
            "users": reaches_of(version=row.model_version) if chosen.get("config") else (),
        },
    )


def _conclusion(report: Mapping[str, Any]) -> str:
    return str(report.get("conclusion") or report.get("reason") or "")


def work_cursor(mark: tuple[int, int] | None) -> int:
    """Return a change marker of a build or tuning."""
    return zlib.crc32(repr(mark).encode())
