"""Registered models, versions and aliases."""

from django.apps import AppConfig

from common.hooks import imported_later


class RegistryConfig(AppConfig):
    name = "registry"
    label = "registry"

    def ready(self) -> None:
        """Register the kind of imports, and what a team's models take."""
        from accounts import hooks  # noqa: PLC0415 - now models can be read
        from jobs.services import kinds  # noqa: PLC0415 - now models can be read

        hooks.team_usage.register(imported_later("registry.selectors.team_usage.team_usage"))
        kinds.register("import", "registry.services.imports.IMPORT")
