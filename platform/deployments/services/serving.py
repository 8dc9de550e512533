"""Changes of services."""

from datetime import datetime

from deployments.models import InferenceService


def service_apply(
    *, document: object, namespace: str | None, name: str | None, actor: str, now: datetime
) -> tuple[InferenceService, bool]:
    """Make or change the service that the service file `document` says; returns it and whether it is new."""
    raise NotImplementedError


def service_delete(*, namespace: str, name: str, actor: str, now: datetime) -> None:
    """Drain the service and remove it; it is in phase Deleting until the cluster has nothing of it."""
    raise NotImplementedError
