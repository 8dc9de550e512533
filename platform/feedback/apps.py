"""Feedback on what services answered."""

from django.apps import AppConfig


class FeedbackConfig(AppConfig):
    name = "feedback"
    label = "feedback"
