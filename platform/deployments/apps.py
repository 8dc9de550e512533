"""Django app of services, revisions and rollouts."""

from collections.abc import Callable
from typing import Any

from django.apps import AppConfig
from django.utils.module_loading import import_string


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        """Register the functions that the registry calls."""
        from registry import hooks  # noqa: PLC0415 - now models can be read

        hooks.uses.register(_imported_later("deployments.selectors.model_uses.uses_of"))
        hooks.version_deleted.register(_imported_later("deployments.services.revision_history.versions_forget"))
        hooks.model_moved.register(_imported_later("deployments.reconcile.schedule.touch_users_of"))
        hooks.version_checked.register(_imported_later("events.services.delivery.version_checked"))
        hooks.version_decided.register(_imported_later("events.services.delivery.version_decided"))
        hooks.works.register(_imported_later("model_jobs.selectors.works_of"))
        hooks.job_driver.register(_imported_later("clusters.services.cluster_selection.driver_default"))
        hooks.measured_on.register(_imported_later("clusters.services.cluster_selection.measured_on_default"))


def _imported_later(path: str) -> Callable[..., Any]:
    """Return the function at `path`, imported on its first call: commands that only migrate need none of them."""

    def call(*arguments: Any) -> Any:
        return import_string(path)(*arguments)

    return call
