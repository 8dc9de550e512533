"""Statuses of KServe's InferenceServices, in the fields of its kind: others the API server would remove.

Ready           clients get answers; else why not, or why what the object says is refused
PredictorReady  replicas of a revision are ready
IngressReady    the service has an address, and answers there
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from custom_resources.views.status import Condition, conditions
from deployments.domain.phases import ServicePhase
from deployments.views.shapes import ServiceView

Json = dict[str, Any]
_SERVES = (ServicePhase.READY, ServicePhase.PROGRESSING)
_REFUSED = "Refused"
_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")


def kserve_status(
    view: ServiceView | None, problem: str, *, before: Mapping[str, Any], generation: int, now: datetime
) -> Json:
    """Return the status of KServe's InferenceService; the arguments are those of `service_status`."""
    found = conditions(_of(view, problem), before.get("conditions") or (), generation=generation, now=now)
    kept = [{name: each[name] for name in _CONDITION if each[name]} for each in found]
    status: Json = {"observedGeneration": generation, "conditions": kept}
    if view is None:
        return status
    of_models = view.model_status
    status |= {
        "url": view.url,
        "address": {"url": view.url},
        "components": {"predictor": _predictor(view)},
        "modelStatus": {
            "transitionStatus": "InvalidSpec" if problem else of_models.transition_status,
            "states": {
                "activeModelState": of_models.active_model_state,
                "targetModelState": of_models.target_model_state,
            },
        },
    }
    return status


def _of(view: ServiceView | None, problem: str) -> Iterable[Condition]:
    phase = ServicePhase.PENDING if view is None else ServicePhase(view.phase)
    serves = phase in _SERVES
    if problem:  # the service may go on with what was said before; what is said now is not served
        yield Condition("Ready", "False", _REFUSED, problem)
    else:
        reason = "it is not followed yet" if view is None else view.reason
        yield Condition("Ready", "True" if serves else "False", phase, "" if serves else reason)
    is_up = view is not None and any(each.replicas_ready for each in view.revisions)
    yield Condition("PredictorReady", "True" if is_up else "False", phase)
    yield Condition("IngressReady", "True" if serves else "False", phase)


def _predictor(view: ServiceView) -> Json:
    traffic = [
        {"revisionName": each.name, "percent": each.weight_actual} for each in view.revisions if each.weight_actual
    ]
    newest = max(view.revisions, key=lambda each: each.name, default=None)
    said = {
        "url": view.url,
        "latestCreatedRevision": "" if newest is None else newest.name,
        "latestReadyRevision": view.stable_revision or "",
        "traffic": traffic,
    }
    return {name: value for name, value in said.items() if value}
