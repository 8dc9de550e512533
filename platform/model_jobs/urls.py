"""Pages of builds, tunings and trials."""

from django.urls import path

from model_jobs.builds import web as build_views
from model_jobs.trials import web as trial_views
from model_jobs.tunings import web as tuning_views
from model_jobs.web import streams

urlpatterns = [
    path("models/<str:model>/versions/<int:number>/builds/", build_views.build_list_page, name="build-list"),
    path(
        "models/<str:model>/versions/<int:number>/builds/<int:build_id>/",
        build_views.build_detail_page,
        name="build-detail",
    ),
    path(
        "models/<str:model>/versions/<int:number>/builds/<int:build_id>/stream",
        streams.build_stream,
        name="build-stream",
    ),
    path(
        "models/<str:model>/versions/<int:number>/builds/<int:build_id>/stop",
        build_views.build_stop_action,
        name="build-stop",
    ),
    path("models/<str:model>/versions/<int:number>/tunings/", tuning_views.tuning_list_page, name="tuning-list"),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/",
        tuning_views.tuning_detail_page,
        name="tuning-detail",
    ),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/stream",
        streams.tuning_stream,
        name="tuning-stream",
    ),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/stop",
        tuning_views.tuning_stop_action,
        name="tuning-stop",
    ),
    path(
        "models/<str:model>/versions/<int:number>/tunings/<int:tuning_id>/look",
        tuning_views.tuning_look_action,
        name="tuning-look",
    ),
    path(
        "models/<str:model>/versions/<int:number>/try/trials/start", trial_views.trial_start_action, name="trial-start"
    ),
    path("models/<str:model>/versions/<int:number>/try/trials/<int:trial_id>/", trial_views.trial_page, name="trial"),
    path(
        "models/<str:model>/versions/<int:number>/try/trials/<int:trial_id>/stop",
        trial_views.trial_stop_action,
        name="trial-stop",
    ),
]
