"""Last failure of a revision, and the state of its model. Pure.

The words are those of KServe's `status.modelStatus`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from deployments.domain.service_state.desired import Role
from integrations.clusters.base import Failure

_SAME = ("reason", "at", "replica", "container")
_DETAILS = ("events", "log")
NEVER_FITS = "never fits"
"""In a runtime's answer for a model that is larger than the memory of all models (`engine.memory.budget`)."""


class ModelState(StrEnum):
    """The state of one revision's model."""

    PENDING = "Pending"
    STANDBY = "Standby"
    LOADING = "Loading"
    LOADED = "Loaded"
    FAILED_TO_LOAD = "FailedToLoad"


class TransitionStatus(StrEnum):
    """The progress of a service to the model of its file."""

    UP_TO_DATE = "UpToDate"
    IN_PROGRESS = "InProgress"
    BLOCKED_BY_FAILED_LOAD = "BlockedByFailedLoad"
    INVALID_SPEC = "InvalidSpec"


def kept(stored: Mapping[str, Any] | None, seen: Failure | None) -> Mapping[str, Any] | None:
    """Return the last failure to keep for a revision, as JSON; None where it never failed.

    A failure that is fields again after recovery, without its events and log, keeps the earlier ones.
    """
    if seen is None:
        return stored
    fields = asdict(seen)
    found = {**fields, **{name: [*fields[name]] for name in _DETAILS}}
    if stored is None:
        return found
    if stored["at"] > found["at"]:
        return stored
    if any(stored[name] != found[name] for name in _SAME):
        return found
    return {**found, **{name: found[name] or stored[name] for name in _DETAILS}}


def model_state(*, role: str, wanted: int, ready: int, replicas: int, is_failing: bool) -> ModelState:
    """Return the state of a revision's model.

    Args:
        replicas: their number, ready or not.
        is_failing: whether one of them, or the making of them, fails now; of a stopped revision, whether it ended with
            a failure.
    """
    if ready:
        return ModelState.LOADED
    if is_failing and (wanted or role == Role.FAILED):
        return ModelState.FAILED_TO_LOAD
    if not wanted:
        return ModelState.STANDBY
    return ModelState.LOADING if replicas else ModelState.PENDING
