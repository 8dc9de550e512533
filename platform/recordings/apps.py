"""Recordings of what clients send, and replays of them."""

from django.apps import AppConfig

from common.hooks import imported_later


class RecordingsConfig(AppConfig):
    name = "recordings"
    label = "recordings"

    def ready(self) -> None:
        """Register the kind of replays, the participant of the reconciler, and the section of a service's page."""
        from deployments import hooks  # noqa: PLC0415 - now models can be read
        from deployments.reconcile import participants  # noqa: PLC0415
        from jobs.services import kinds  # noqa: PLC0415

        kinds.register("replay", "recordings.services.replays.REPLAY")
        participants.register("recordings.reconcile.payloads.RECORDINGS")
        hooks.service_page.register(imported_later("recordings.web.recording_pages.of_service_page"))
