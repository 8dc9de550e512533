"""Builds, tunings and trials of a version."""

from django.urls import path

from model_jobs.builds import api as builds
from model_jobs.trials import api as trials
from model_jobs.tunings import api as tunings

urlpatterns = [
    path("models/<str:name>/versions/<int:number>/builds", builds.BuildListView.as_view(), name="build-list"),
    path(
        "models/<str:name>/versions/<int:number>/builds/<int:build_id>",
        builds.BuildDetailView.as_view(),
        name="build-detail",
    ),
    path("models/<str:name>/versions/<int:number>/trials", trials.TrialListView.as_view(), name="trial-list"),
    path(
        "models/<str:name>/versions/<int:number>/trials/<int:trial_id>",
        trials.TrialDetailView.as_view(),
        name="trial-detail",
    ),
    path("models/<str:name>/versions/<int:number>/tunings", tunings.TuningListView.as_view(), name="tuning-list"),
    path(
        "models/<str:name>/versions/<int:number>/tunings/<int:tuning_id>",
        tunings.TuningDetailView.as_view(),
        name="tuning-detail",
    ),
    path(
        "models/<str:name>/versions/<int:number>/tunings/<int:tuning_id>/apply",
        tunings.TuningApplyView.as_view(),
        name="tuning-apply",
    ),
]
