"""Composition root of the control plane; importing it makes the Celery application known to `shared_task`."""

from control_plane.celery import app as celery_app

__all__ = ["celery_app"]
