"""Feedback on a service's answers."""

from django.urls import path

from feedback.api import answers, drift, labels, quality, scorers

urlpatterns = [
    path("services/<str:namespace>/<str:name>/feedback", labels.FeedbackView.as_view(), name="feedback"),
    path(
        "services/<str:namespace>/<str:name>/feedback/answers", answers.KeptAnswersView.as_view(), name="kept-answers"
    ),
    path("services/<str:namespace>/<str:name>/feedback/drift", drift.DriftView.as_view(), name="drift"),
    path(
        "services/<str:namespace>/<str:name>/feedback/drift/accept",
        drift.DriftAcceptView.as_view(),
        name="drift-accept",
    ),
    path(
        "services/<str:namespace>/<str:name>/feedback/quality", quality.QualityView.as_view(), name="feedback-quality"
    ),
    path("services/<str:namespace>/<str:name>/feedback/scorers", scorers.ScorerListView.as_view(), name="scorer-list"),
    path(
        "services/<str:namespace>/<str:name>/feedback/scorers/<str:scorer>",
        scorers.ScorerView.as_view(),
        name="scorer-detail",
    ),
]
