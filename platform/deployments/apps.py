"""The app of services, revisions and rollouts."""

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        from deployments import deliveries, usage  # noqa: PLC0415 - models can be read only now
        from registry import outcomes  # noqa: PLC0415

        usage.register()
        outcomes.register(deliveries.version_checked)
