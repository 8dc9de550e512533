"""Recordings of what clients send, and replays of them."""

from django.apps import AppConfig

from common.hooks import imported_later


class RecordingsConfig(AppConfig):
    name = "recordings"
    label = "recordings"

    def ready(self) -> None:
        """Register the section of a service's page, and recordings as a participant of the reconciler."""
        from deployments import hooks  # noqa: PLC0415 - now models can be read
        from deployments.reconcile import participants  # noqa: PLC0415

        hooks.service_page.register(imported_later("recordings.web.recording_pages.of_service_page"))
        participants.register("recordings.reconcile.payloads.RECORDINGS")
