"""Pages of feedback."""

from django.urls import path

from feedback.web import drift_page, views

_SERVICE = "services/<str:namespace>/<str:name>/feedback"
urlpatterns = [
    path(f"{_SERVICE}/", views.feedback_page, name="feedback"),
    path(f"{_SERVICE}/keep", views.feedback_keep_action, name="feedback-keep"),
    path(f"{_SERVICE}/stop", views.feedback_stop_action, name="feedback-stop"),
    path(f"{_SERVICE}/scorers", views.scorer_set_action, name="scorer-set"),
    path(f"{_SERVICE}/scorers/<str:scorer>/delete", views.scorer_delete_action, name="scorer-delete"),
    path(f"{_SERVICE}/drift/", drift_page.drift_page, name="drift"),
    path(f"{_SERVICE}/drift/accept", drift_page.drift_accept_action, name="drift-accept"),
]
