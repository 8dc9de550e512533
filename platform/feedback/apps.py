"""Feedback on what services answered."""

from django.apps import AppConfig

from common.hooks import imported_later


class FeedbackConfig(AppConfig):
    name = "feedback"
    label = "feedback"

    def ready(self) -> None:
        """Register the participants of the reconciler, the labels of gates, and the section of a service's page."""
        from deployments import hooks  # noqa: PLC0415 - now models can be read
        from deployments.reconcile import participants  # noqa: PLC0415

        participants.register("feedback.reconcile.answers.ANSWERS")
        hooks.labelled_answers.register(imported_later("feedback.selectors.gate_labels.labelled_answers"))
        hooks.label_habits.register(imported_later("feedback.selectors.gate_labels.label_habits"))
        participants.register("feedback.reconcile.drift.DRIFT")
        hooks.service_page.register(imported_later("feedback.web.feedback_page.of_service_page"))
