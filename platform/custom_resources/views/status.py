"""Statuses of objects, from what pages and the API show of a service and its rollout.

Ready        clients get answers
Progressing  a rollout goes on, or the first replicas start; the message is why it waits
Promoted     the newest rollout ended with its new version live
Degraded     the newest rollout ended without it, replicas fail, or the object is refused

Two more are there only while they are True, at most one of them, for tools that read kstatus, such as Flux:

Reconciling  the object is on its way to what it says
Stalled      it does not get there by itself
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from deployments.domain.phases import ENDED_BADLY, Phase, ServicePhase
from deployments.domain.waits.service import Condition as WaitCondition
from deployments.domain.waits.wait import Wait
from deployments.views.shapes import RolloutView, ServiceView

Json = dict[str, Any]
_SERVES = (ServicePhase.READY, ServicePhase.PROGRESSING)
_REFUSED = "Refused"
_STUCK = (WaitCondition.IMPORT_FAILED, WaitCondition.CLUSTER_REFUSES, WaitCondition.ALIAS_REFUSED)
"""Waits that end by a change of the object, the model or the cluster alone."""
_STARTS = (WaitCondition.STARTING, WaitCondition.REPLICAS_NOT_READY)


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
    found = [*_of_service(view, problem), *_of_service_for_kstatus(view, problem)]
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
    yield _degraded(view, problem)


def _of_service_for_kstatus(view: ServiceView | None, problem: str) -> Iterable[Condition]:
    progressing, degraded = _progressing(view, None if view is None else view.rollout), _degraded(view, problem)
    is_rolling_out = view is not None and view.rollout is not None and not Phase(view.rollout.phase).is_finished
    if problem:
        yield degraded._replace(type="Stalled")
    elif is_rolling_out:
        yield progressing._replace(type="Reconciling")
    elif _is_turned_away(view):
        yield degraded._replace(type="Stalled")
    elif progressing.status == "True":
        # Replicas that are not ready yet, as after a change of minReplicas, are on their way.
        is_stuck = progressing.reason in _STUCK or (progressing.reason in _STARTS and _is_failing(view))
        yield progressing._replace(type="Stalled" if is_stuck else "Reconciling")


def _is_turned_away(view: ServiceView | None) -> bool:
    """Return whether the newest rollout ended badly and the object still says what it was for."""
    if view is None or view.rollout is None or view.phase == ServicePhase.STOPPED:
        return False
    return view.rollout.phase in ENDED_BADLY and not view.file.is_live


def _is_failing(view: ServiceView | None) -> bool:
    return view is not None and any(each.is_failing for each in view.revisions if each.name == view.stable_revision)


def _degraded(view: ServiceView | None, problem: str) -> Condition:
    rollout = None if view is None else view.rollout
    if problem:
        return Condition("Degraded", "True", _REFUSED, problem)
    if rollout is not None and rollout.phase in ENDED_BADLY:
        return Condition("Degraded", "True", rollout.reason.code, rollout.reason.message)
    if view is not None and view.phase == ServicePhase.DEGRADED:
        return Condition("Degraded", "True", view.phase, view.reason)
    return Condition("Degraded", "False", "AsExpected")


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
    promoted = _promoted(None, rollout)
    kstatus = [waits._replace(type="Reconciling")] if not phase.is_finished else []
    if phase in ENDED_BADLY:
        kstatus = [Condition("Stalled", "True", promoted.reason, promoted.message)]
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
        "conditions": _with([waits, promoted, *kstatus], before, generation, now),
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
    phase, reason, uri, digest = state or VersionState("Pending", "its import is not ordered yet")
    ready = Condition("Ready", "True" if phase == "Ready" else "False", phase, reason)
    degraded = Condition("Degraded", "False", "AsExpected")
    if problem or phase in ("ImportFailed", "Rejected"):
        degraded = Condition("Degraded", "True", _REFUSED if problem else phase, problem or reason)
    kstatus = []
    if degraded.status == "True":
        kstatus = [degraded._replace(type="Stalled")]
    elif phase == "Deleted":
        kstatus = [Condition("Stalled", "True", phase, "its version was deleted")]
    elif phase != "Ready":
        kstatus = [Condition("Reconciling", "True", phase, reason)]
    status: Json = {
        "observedGeneration": generation,
        "phase": phase,
        "conditions": _with([ready, degraded, *kstatus], before, generation, now),
    }
    return status | {name: said for name, said in (("uri", uri), ("digest", digest)) if said}


def policy_status(problem: str, *, before: Mapping[str, Any], generation: int, now: datetime) -> Json:
    """Return the status of a RolloutPolicy."""
    found = [Condition("Ready", "False" if problem else "True", _REFUSED if problem else "Saved", problem)]
    if problem:
        found.append(Condition("Stalled", "True", _REFUSED, problem))
    return {"observedGeneration": generation, "conditions": _with(found, before, generation, now)}


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
