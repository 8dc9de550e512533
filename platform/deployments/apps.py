"""Django app of services, revisions and rollouts."""

from django.apps import AppConfig

from common.hooks import imported_later


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        """Register the functions that clusters and the registry call."""
        from clusters import hooks as of_clusters  # noqa: PLC0415 - now models can be read
        from registry import hooks as of_registry  # noqa: PLC0415
        from sealed_secrets import hooks as of_secrets  # noqa: PLC0415
        from usage import hooks as of_usage  # noqa: PLC0415

        of_registry.uses.register(imported_later("deployments.selectors.model_uses.uses_of"))
        of_registry.version_deleted.register(
            imported_later("deployments.services.revisions.revision_history.versions_forget")
        )
        of_registry.model_moved.register(imported_later("deployments.reconcile.schedule.touch_users_of"))
        of_clusters.cluster_changed.register(imported_later("deployments.reconcile.schedule.touch_running_on"))
        of_clusters.services_touched.register(imported_later("deployments.reconcile.schedule.reconcile_named"))
        of_clusters.findings.register(imported_later("deployments.reconcile.restarts.left_out_findings"))
        of_usage.accelerators.register(imported_later("deployments.selectors.traffic.costs.accelerators"))
        of_usage.has_service.register(imported_later("deployments.selectors.services.has_service"))
        of_usage.services.register(imported_later("deployments.selectors.services.services_on_kubernetes"))
        of_secrets.changed.register(imported_later("deployments.reconcile.schedule.touch_in_namespace"))
        of_secrets.uses.register(imported_later("deployments.selectors.secret_uses.uses_of"))
        of_clusters.resources_used.register(imported_later("deployments.selectors.traffic.costs.resources_used"))
        of_clusters.services_public.register(imported_later("deployments.selectors.services.services_public"))
        of_clusters.services_worst_first.register(imported_later("deployments.selectors.services.services_worst_first"))
