"""Statuses of objects, from what pages and the API show of a service and its rollout.

Ready        clients get answers
Progressing  a rollout goes on, or the first replicas start; the message is why it waits
Promoted     the newest rollout ended with its new version live
Degraded     the newest rollout ended without it, replicas fail, or the object is refused
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from deployments.domain.phases import ENDED_BADLY, Phase, ServicePhase
from deployments.domain.waits.wait import Wait
from deployments.views.shapes import RolloutView, ServiceView

Json = dict[str, Any]
_SERVES = (ServicePhase.READY, ServicePhase.PROGRESSING)
_REFUSED = "Refused"


class Condition(NamedTuple):
    """What is so of an object: `status` is True, False or Unknown, `reason` one word for programs."""

    type: str
    status: str
    reason: str
    message: str = ""


def conditions(
    found: Iterable[Condition], before: Iterable[Mapping[str, Any]], *, generation: int, now: datetime
) -> list[dict[str, Any]]:
    """Return conditions as a status has them; one whose status is as before keeps the time of its last transition."""
    known = {each.get("type"): each for each in before}
    result = []
    for each in found:
        was = known.get(each.type, {})
        kept = was.get("lastTransitionTime") if was.get("status") == each.status else None
        result.append(
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "observedGeneration": generation,
                "lastTransitionTime": kept or f"{now:%Y-%m-%dT%H:%M:%SZ}",
            }
        )
    return result


def service_status(
    view: ServiceView | None, problem: str, *, before: Mapping[str, Any], generation: int, now: datetime
) -> Json:
    """Return the status of an InferenceService.

    Args:
        view: its service; None before it has one.
        problem: why what the object says is refused; empty where it is not.
        before: its status as it is.
        generation: of the object that the service follows.
    """
    found = list(_of_service(view, problem))
    status: Json = {"observedGeneration": generation, "conditions": _with(found, before, generation, now)}
    if view is None:
        return status | {"phase": _REFUSED if problem else ServicePhase.PENDING.value}
    status |= {
        "phase": view.phase,
        "url": view.url,
        "model": view.model,
        "weights": {each.name: each.weight_actual for each in view.revisions if each.weight_actual},
        "replicas": sum(each.replicas_ready for each in view.revisions),
    }
    if view.leaving_urls:
        status["leavingUrls"] = list(view.leaving_urls)
    if view.preview_url is not None:
        status["previewUrl"] = view.preview_url
    if view.stable_revision is not None:
        status["revision"] = view.stable_revision
    if view.model_version is not None:
        status["modelVersion"] = str(view.model_version)
    return status


def _of_service(view: ServiceView | None, problem: str) -> Iterable[Condition]:
    rollout = None if view is None else view.rollout
    if view is None:
        why = problem or "it is not followed yet"
        yield Condition("Ready", "False", _REFUSED if problem else "Pending", why)
    else:
        serves = view.phase in _SERVES
        yield Condition("Ready", "True" if serves else "False", view.phase, "" if serves else view.reason)
    yield _progressing(view, rollout)
    yield _promoted(view, rollout)
    if problem:
        yield Condition("Degraded", "True", _REFUSED, problem)
    elif rollout is not None and rollout.phase in ENDED_BADLY:
        yield Condition("Degraded", "True", rollout.reason.code, rollout.reason.message)
    elif view is not None and view.phase == ServicePhase.DEGRADED:
        yield Condition("Degraded", "True", view.phase, view.reason)
    else:
        yield Condition("Degraded", "False", "AsExpected")


def _progressing(view: ServiceView | None, rollout: RolloutView | None) -> Condition:
    if rollout is not None and not Phase(rollout.phase).is_finished:
        return Condition("Progressing", "True", rollout.reason.code, _sentence(rollout.waits, rollout.reason.message))
    if view is not None and view.waits is not None:
        return Condition("Progressing", "True", view.waits.condition, _sentence(view.waits, view.reason))
    return Condition("Progressing", "False", "Settled" if view is not None else "Pending")


def _promoted(view: ServiceView | None, rollout: RolloutView | None) -> Condition:
    if rollout is None:
        is_live = view is not None and view.stable_revision is not None and view.phase in _SERVES
        return Condition("Promoted", "True" if is_live else "Unknown", "FirstRevision" if is_live else "Pending")
    phase = Phase(rollout.phase)
    if not phase.is_finished:
        return Condition("Promoted", "Unknown", rollout.reason.code, f"rollout {rollout.id} to {rollout.to_revision}")
    return Condition(
        "Promoted", "True" if phase is Phase.HEALTHY else "False", rollout.reason.code, rollout.reason.message
    )


def rollout_status(
    rollout: RolloutView, action: Mapping[str, Any] | None, *, before: Mapping[str, Any], generation: int, now: datetime
) -> Json:
    """Return the status of a Rollout.

    Args:
        action: the last one that was done, with its outcome; None before the first.
    """
    phase = Phase(rollout.phase)
    waits = Condition(
        "Progressing",
        "False" if phase.is_finished else "True",
        rollout.reason.code,
        _sentence(rollout.waits, rollout.reason.message),
    )
    status: Json = {
        "observedGeneration": generation,
        "id": rollout.id,
        "phase": rollout.phase,
        "strategy": rollout.strategy,
        "from": rollout.from_revision,
        "to": rollout.to_revision,
        "weight": rollout.weight_actual,
        "step": min(rollout.step_index + 1, len(rollout.steps)),
        "steps": len(rollout.steps),
        "verdict": rollout.verdict,
        "message": waits.message,
        "startedAt": _time(rollout.started_at),
        "conditions": _with([waits, _promoted(None, rollout)], before, generation, now),
    }
    if rollout.finished_at is not None:
        status["finishedAt"] = _time(rollout.finished_at)
    if action is not None:
        status["lastAction"] = dict(action)
    return status


class VersionState(NamedTuple):
    """How far a version is: Importing, ImportFailed, Checking, Ready, Rejected or Deleted, and why; then its URI."""

    phase: str
    reason: str = ""
    uri: str = ""
    digest: str = ""


def version_status(
    state: VersionState | None, problem: str, *, before: Mapping[str, Any], generation: int, now: datetime
) -> Json:
    """Return the status of a ModelVersion; `state` is None before its import is ordered."""
    phase, reason, uri, digest = state or VersionState("Pending")
    ready = Condition("Ready", "True" if phase == "Ready" else "False", phase, reason)
    is_bad = bool(problem) or phase in ("ImportFailed", "Rejected")
    degraded = Condition("Degraded", "True", _REFUSED if problem else phase, problem or reason)
    status: Json = {
        "observedGeneration": generation,
        "phase": phase,
        "conditions": _with(
            [ready, degraded if is_bad else Condition("Degraded", "False", "AsExpected")], before, generation, now
        ),
    }
    return status | {name: said for name, said in (("uri", uri), ("digest", digest)) if said}


def policy_status(problem: str, *, before: Mapping[str, Any], generation: int, now: datetime) -> Json:
    """Return the status of a RolloutPolicy."""
    found = Condition("Ready", "False" if problem else "True", _REFUSED if problem else "Saved", problem)
    return {"observedGeneration": generation, "conditions": _with([found], before, generation, now)}


def _with(found: Iterable[Condition], before: Mapping[str, Any], generation: int, now: datetime) -> list[Json]:
    return conditions(found, before.get("conditions") or (), generation=generation, now=now)


def _sentence(waits: Wait | None, otherwise: str) -> str:
    return (
        otherwise
        if waits is None
        else f"{waits.evidence}; {waits.changes_when}"
        if waits.changes_when
        else waits.evidence
    )


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
