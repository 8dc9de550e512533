"""Registers the system checks that stop a wrongly configured control plane at its start."""

from django.apps import AppConfig


class ControlPlaneConfig(AppConfig):
    name = "control_plane"
    label = "control_plane"

    def ready(self) -> None:
        from control_plane import checks  # noqa: F401, PLC0415 - registers itself
