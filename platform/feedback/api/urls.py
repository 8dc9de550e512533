"""Feedback on a service's answers."""

from django.urls import path

from feedback.api import answers, drift

urlpatterns = [
    path(
        "services/<str:namespace>/<str:name>/feedback/answers", answers.KeptAnswersView.as_view(), name="kept-answers"
    ),
    path("services/<str:namespace>/<str:name>/feedback/drift", drift.DriftView.as_view(), name="drift"),
    path(
        "services/<str:namespace>/<str:name>/feedback/drift/accept",
        drift.DriftAcceptView.as_view(),
        name="drift-accept",
    ),
]
