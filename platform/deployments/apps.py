"""The app of services, revisions and rollouts."""

from collections.abc import Callable
from typing import Any

from django.apps import AppConfig
from django.utils.module_loading import import_string


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        """Register with the registry the functions that it calls."""
        from registry import decisions, moves, outcomes, place, usage, works  # noqa: PLC0415 - now models can be read

        usage.register(_imported_later("deployments.usage.uses_of"))
        usage.register_history(_imported_later("deployments.services.revision_history.versions_forget"))
        moves.register(_imported_later("deployments.due.touch_users_of"))
        outcomes.register(_imported_later("deployments.deliveries.version_checked"))
        decisions.register(_imported_later("deployments.deliveries.version_decided"))
        works.register(_imported_later("deployments.selectors.works.works_of"))
        place.register(
            _imported_later("deployments.services.driver_default"),
            _imported_later("deployments.services.measured_on_default"),
        )


def _imported_later(path: str) -> Callable[..., Any]:
    """Return the function at `path`, which is imported by its first call: what only migrates needs none of them."""

    def call(*arguments: Any) -> Any:
        return import_string(path)(*arguments)

    return call
