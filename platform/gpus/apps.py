"""Repartition of GPUs: proposed, approved, carried out on a node."""

from django.apps import AppConfig

from common.hooks import imported_later


class GpusConfig(AppConfig):
    name = "gpus"
    label = "gpus"

    def ready(self) -> None:
        """Carry repartitions out with each sweep of their cluster."""
        from deployments import hooks  # noqa: PLC0415 - now models can be read

        hooks.cluster_observed.register(imported_later("gpus.reconcile.repartition.repartitions_carry_out"))
