"""Feedback of a service."""

from django.urls import path

from feedback.api import quality

urlpatterns = [
    path(
        "services/<str:namespace>/<str:name>/feedback/quality",
        quality.QualityView.as_view(),
        name="feedback-quality",
    ),
]
