"""Feedback on a service's answers."""

from django.urls import path

from feedback.api import labels, scorers

urlpatterns = [
    path("services/<str:namespace>/<str:name>/feedback", labels.FeedbackView.as_view(), name="feedback"),
    path("services/<str:namespace>/<str:name>/feedback/scorers", scorers.ScorerListView.as_view(), name="scorer-list"),
    path(
        "services/<str:namespace>/<str:name>/feedback/scorers/<str:scorer>",
        scorers.ScorerView.as_view(),
        name="scorer-detail",
    ),
]
