"""Recordings of what clients send, and replays of them."""

from django.apps import AppConfig


class RecordingsConfig(AppConfig):
    name = "recordings"
    label = "recordings"

    def ready(self) -> None:
        """Register recordings as a participant of the reconciler."""
        from deployments.reconcile import participants  # noqa: PLC0415 - now models can be read

        participants.register("recordings.reconcile.payloads.RECORDINGS")
