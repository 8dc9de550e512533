"""Registers the system checks that stop a wrongly configured control plane at its start."""

import logging
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models.signals import post_migrate

from serving_runtime.shared import json_log

logger = logging.getLogger(__name__)


class ControlPlaneConfig(AppConfig):
    name = "control_plane"
    label = "control_plane"

    def ready(self) -> None:
        from control_plane import checks  # noqa: F401, PLC0415 - registers itself

        if settings.LOG_FORMAT == json_log.JSON:
            json_log.log_uncaught()
            post_migrate.connect(_log_migrations, sender=apps.get_app_config("accounts"))


def _log_migrations(plan: list[tuple[Any, bool]], verbosity: int, **_: object) -> None:
    """Log what Django's command prints as text, unless it does; Django sends the signal for each app."""
    if not verbosity:
        names = [f"{each.app_label}.{each.name}{' (reversed)' if backwards else ''}" for each, backwards in plan]
        logger.info("migrations applied: %s", ", ".join(names) or "none, the database has them all")
