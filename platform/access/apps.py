"""Keys of callers, and what gateways need to check them."""

from django.apps import AppConfig

from common.hooks import imported_later


class AccessConfig(AppConfig):
    name = "access"
    label = "access"

    def ready(self) -> None:
        """Sign the control plane's own calls of services, such as those of the Try page."""
        from deployments import hooks  # noqa: PLC0415 - now models can be read

        hooks.call_token.register(imported_later("access.services.keys.console_token"))
