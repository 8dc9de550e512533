"""Views of a revision's last failure and of the state of a service's models. Made by the selectors.

The words are those of KServe's `status.modelStatus`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from deployments.domain.service_state.failures import ModelState, TransitionStatus
from deployments.views.shapes import FailureEventView, FailureView, ModelStatusView, RevisionView
from integrations.clusters.base import failure_from_json


def failure_view(stored: Mapping[str, Any] | None) -> FailureView | None:
    """Return a stored failure as it is shown."""
    if stored is None:
        return None
    failure = failure_from_json(stored)
    events = (FailureEventView(_moment(each.at), each.reason, each.message, each.count) for each in failure.events)
    return FailureView(
        reason=failure.reason.value,
        message=failure.message,
        at=_moment(failure.at),
        exit_code=failure.exit_code,
        replica=failure.replica,
        container=failure.container,
        events=tuple(events),
        log=failure.log,
        is_final=failure.is_final,
    )


def model_status(
    *, active: RevisionView | None, target: RevisionView | None, is_in_progress: bool, is_file_refused: bool
) -> ModelStatusView:
    """Return the status of a service's models.

    Args:
        active: the revision that answers clients, or is to first; None while the first model is imported.
        target: the one that is rolled out, or was rejected for its failure; else the active one.
        is_in_progress: a rollout to the target is in progress.
        is_file_refused: the content of the file cannot be rolled out at all.
    """
    target = target or active
    target_state = ModelState.PENDING if target is None else ModelState(target.model_state)
    if is_file_refused:
        status = TransitionStatus.INVALID_SPEC
    elif target_state is ModelState.FAILED_TO_LOAD:
        status = TransitionStatus.BLOCKED_BY_FAILED_LOAD
    elif not is_in_progress and target_state in (ModelState.LOADED, ModelState.STANDBY):
        status = TransitionStatus.UP_TO_DATE
    else:
        status = TransitionStatus.IN_PROGRESS
    return ModelStatusView(
        transition_status=status.value,
        active_model_state=(ModelState.PENDING if active is None else ModelState(active.model_state)).value,
        target_model_state=target_state.value,
        last_failure=_newest(active, target),
    )


def _newest(*revisions: RevisionView | None) -> FailureView | None:
    found = (each.last_failure for each in revisions if each is not None)
    return max((each for each in found if each is not None), key=lambda each: each.at, default=None)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
