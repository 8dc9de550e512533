"""Pages of services and rollouts."""

from django.urls import path

from deployments import events, views

app_name = "deployments"
urlpatterns = [
    path("", views.home, name="home"),
    path("services/", views.service_list_page, name="service-list"),
    path("services/stream", events.service_list_stream, name="service-list-stream"),
    path("services/<str:namespace>/<str:name>/", views.service_detail_page, name="service-detail"),
    path("services/<str:namespace>/<str:name>/stream", events.service_stream, name="service-stream"),
    path("services/<str:namespace>/<str:name>/rollback", views.service_rollback_action, name="service-rollback"),
    path("rollouts/<int:rollout_id>/<slug:verb>", views.rollout_action, name="rollout-action"),
]
