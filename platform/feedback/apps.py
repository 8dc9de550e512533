"""Feedback on what services answered."""

from django.apps import AppConfig


class FeedbackConfig(AppConfig):
    name = "feedback"
    label = "feedback"

    def ready(self) -> None:
        """Register the participants of the reconciler."""
        from deployments.reconcile import participants  # noqa: PLC0415 - now models can be read

        participants.register("feedback.reconcile.answers.ANSWERS")
        participants.register("feedback.reconcile.drift.DRIFT")
