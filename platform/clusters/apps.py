"""Clusters: where services run, how they are reached, and what they cost."""

from django.apps import AppConfig

from common.hooks import imported_later


class ClustersConfig(AppConfig):
    name = "clusters"
    label = "clusters"

    def ready(self) -> None:
        """Register the cluster on which models without a service are checked."""
        from registry import hooks  # noqa: PLC0415 - now models can be read

        hooks.job_driver.register(imported_later("clusters.services.cluster_selection.driver_default"))
        hooks.jobs_at_once.register(imported_later("clusters.services.cluster_selection.jobs_at_once_default"))
        hooks.measured_on.register(imported_later("clusters.services.cluster_selection.measured_on_default"))
