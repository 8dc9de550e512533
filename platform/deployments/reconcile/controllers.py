"""Controllers that run now. Each says so every two seconds; one that has not done so for `HELD` has ended."""

from datetime import datetime

from deployments.models import ControllerProcess
from deployments.reconcile.renewal import HELD


def beat(name: str, *, now: datetime) -> list[str]:
    """Record that a controller runs, and return the names of all that do; what is left of others is deleted."""
    if not ControllerProcess.objects.filter(name=name).update(seen_at=now):
        ControllerProcess.objects.update_or_create(name=name, defaults={"seen_at": now})
    rows = ControllerProcess.objects.values_list("name", "seen_at")
    running = [each for each, seen_at in rows if seen_at > now - HELD]
    if len(running) < len(rows):
        ControllerProcess.objects.filter(seen_at__lte=now - HELD).delete()
    return running


def leave(name: str) -> None:
    """Record the end of a controller."""
    ControllerProcess.objects.filter(name=name).delete()
