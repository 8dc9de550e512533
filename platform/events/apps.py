"""Events of services and clusters, and the webhooks that receive them."""

from django.apps import AppConfig

from common.hooks import imported_later


class EventsConfig(AppConfig):
    name = "events"
    label = "events"

    def ready(self) -> None:
        """Queue webhook deliveries of what accounts and the registry report."""
        from accounts.hooks import token_made_for_another  # noqa: PLC0415 - now models can be read
        from registry import hooks  # noqa: PLC0415 - now models can be read

        hooks.version_checked.register(imported_later("events.services.delivery.version_checked"))
        hooks.version_decided.register(imported_later("events.services.delivery.version_decided"))
        token_made_for_another.register(imported_later("events.services.delivery.token_made_for_another"))
