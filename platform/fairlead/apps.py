"""Registers the system checks that stop a wrongly configured control plane at its start."""

from django.apps import AppConfig


class FairleadConfig(AppConfig):
    name = "fairlead"
    label = "fairlead"

    def ready(self) -> None:
        from fairlead import checks  # noqa: F401, PLC0415 - registers itself
