"""Feedback on a service's answers."""

from django.urls import path

from feedback.api import answers, quality

urlpatterns = [
    path(
        "services/<str:namespace>/<str:name>/feedback/answers", answers.KeptAnswersView.as_view(), name="kept-answers"
    ),
    path(
        "services/<str:namespace>/<str:name>/feedback/quality", quality.QualityView.as_view(), name="feedback-quality"
    ),
]
