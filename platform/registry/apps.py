"""Registered models, versions and aliases."""

from django.apps import AppConfig


class RegistryConfig(AppConfig):
    name = "registry"
    label = "registry"

    def ready(self) -> None:
        """Register the kind of imports."""
        from jobs.services import kinds  # noqa: PLC0415 - now models can be read

        kinds.register("import", "registry.services.imports.IMPORT")
