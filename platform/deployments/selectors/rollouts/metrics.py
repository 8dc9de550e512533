"""Rollouts in progress for the metrics page; two queries, whatever their number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from deployments.domain.phases import Phase
from deployments.models import AnalysisRun, Rollout

_IN_PROGRESS = (Phase.PENDING, Phase.PROGRESSING, Phase.PAUSED)


@dataclass(frozen=True, slots=True)
class Judged:
    """A metric of the present step.

    Attributes:
        evidence_percent: progress of the evidence against the canary; 100 fails it.
    """

    metric: str
    verdict: str
    evidence_percent: float


@dataclass(frozen=True, slots=True)
class RolloutNow:
    """A rollout in progress; times are in seconds.

    Attributes:
        step, steps: steps that are done, and all of its policy.
        weight: desired percent of the clients' requests.
        confirmed_weight: what the gateway was last seen to send; None where it was not seen.
        step_s: since the gateway confirmed the traffic of the step; None until it does.
        waits_s: since its reason began.
        turn_s: since the last turn of its service; None before the first.
    """

    namespace: str
    service: str
    rollout: int
    revision: str
    policy: str
    phase: str
    reason: str
    step: int
    steps: int
    weight: int
    confirmed_weight: int | None
    step_s: float | None
    waits_s: float
    turn_s: float | None
    judged: tuple[Judged, ...]


def rollouts_now(*, now: datetime) -> Iterator[RolloutNow]:
    """Yield the rollouts in progress."""
    judged = _judged()
    rows = Rollout.objects.filter(phase__in=_IN_PROGRESS).order_by()
    for row in rows.values(
        "pk",
        "service__namespace",
        "service__name",
        "service__ticked_at",
        "service__observed",
        "to_revision__name",
        "policy_name",
        "policy_document__steps",
        "phase",
        "reason_code",
        "step_index",
        "weight",
        "confirmed_at",
        "reason_since",
        "attempt_started_at",
    ):
        seen = (row["service__observed"] or {}).get(row["to_revision__name"])
        yield RolloutNow(
            namespace=row["service__namespace"],
            service=row["service__name"],
            rollout=row["pk"],
            revision=row["to_revision__name"],
            policy=row["policy_name"],
            phase=row["phase"],
            reason=row["reason_code"],
            step=row["step_index"],
            steps=len(row["policy_document__steps"] or ()),
            weight=row["weight"],
            confirmed_weight=_weight(seen),
            step_s=_since(row["confirmed_at"], now),
            waits_s=_since(row["reason_since"] or row["attempt_started_at"], now) or 0.0,
            turn_s=_since(row["service__ticked_at"], now),
            judged=judged.get(row["pk"], ()),
        )


def _judged() -> dict[int, tuple[Judged, ...]]:
    """Return the metrics of the present steps, by rollout."""
    runs = AnalysisRun.objects.filter(
        rollout__phase__in=_IN_PROGRESS, attempt=F("rollout__attempt"), step_index=F("rollout__step_index")
    )
    return {
        rollout: tuple(
            Judged(str(each["metric"]), str(each["verdict"]), float(each.get("evidence_percent") or 0.0))
            for each in measurements
        )
        for rollout, measurements in runs.values_list("rollout_id", "measurements").order_by()
    }


def _weight(seen: Mapping[str, Any] | None) -> int | None:
    return None if seen is None or seen.get("weight") is None else int(seen["weight"])


def _since(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())
