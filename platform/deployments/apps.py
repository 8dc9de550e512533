"""The app of services, revisions and rollouts."""

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"
    label = "deployments"

    def ready(self) -> None:
        from deployments import usage  # noqa: PLC0415 - models can be read only now

        usage.register()
