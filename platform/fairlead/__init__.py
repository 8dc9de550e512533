"""The name that the control plane had in release 0.1.0: deployments made for it still start. Goes with the next
release."""

from control_plane.celery import app as celery_app

__all__ = ["celery_app"]
