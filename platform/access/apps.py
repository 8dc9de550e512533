"""Keys of callers, and what gateways need to check them."""

from django.apps import AppConfig

from common.hooks import imported_later


class AccessConfig(AppConfig):
    name = "access"
    label = "access"

    def ready(self) -> None:
        """Register what services and usage ask of keys, such as the token for calls of the Try page."""
        from deployments import hooks as of_services  # noqa: PLC0415 - now models can be read
        from usage import hooks as of_usage  # noqa: PLC0415

        of_services.call_token.register(imported_later("access.services.keys.console_token"))
        of_usage.team_of_key.register(imported_later("access.selectors.team_of_key"))
