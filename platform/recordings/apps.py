"""Recordings of what clients send, and replays of them."""

from django.apps import AppConfig


class RecordingsConfig(AppConfig):
    name = "recordings"
    label = "recordings"

    def ready(self) -> None:
        """Register the kind of replays."""
        from jobs.services import kinds  # noqa: PLC0415 - now models can be read

        kinds.register("replay", "recordings.services.replays.REPLAY")
