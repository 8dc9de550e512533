"""Feedback on a service's answers."""

from django.urls import path

from feedback.api import answers

urlpatterns = [
    path(
        "services/<str:namespace>/<str:name>/feedback/answers", answers.KeptAnswersView.as_view(), name="kept-answers"
    ),
]
