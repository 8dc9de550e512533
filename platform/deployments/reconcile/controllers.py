"""Controllers that run now. Each says so every two seconds; one that has not done so for `HELD` has ended."""

from datetime import datetime

from deployments.models import ControllerProcess
from deployments.reconcile.renewal import HELD


def beat(name: str, *, now: datetime) -> list[str]:
    """Record that a controller runs, and return the names of all that do; what is left of others is deleted."""
    ControllerProcess.objects.update_or_create(name=name, defaults={"seen_at": now})
    ControllerProcess.objects.filter(seen_at__lte=now - HELD).delete()
    return list(ControllerProcess.objects.values_list("name", flat=True))


def leave(name: str) -> None:
    """Record the end of a controller."""
    ControllerProcess.objects.filter(name=name).delete()
