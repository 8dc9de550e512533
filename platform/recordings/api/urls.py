"""Recordings and replays of a service."""

from django.urls import path

from recordings.api import recordings, replays

urlpatterns = [
    path(
        "services/<str:namespace>/<str:name>/recordings", recordings.RecordingListView.as_view(), name="recording-list"
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>",
        recordings.RecordingDetailView.as_view(),
        name="recording-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/stop",
        recordings.RecordingStopView.as_view(),
        name="recording-stop",
    ),
    path("services/<str:namespace>/<str:name>/replays", replays.ReplayListView.as_view(), name="replay-list"),
    path(
        "services/<str:namespace>/<str:name>/replays/<int:replay_id>",
        replays.ReplayDetailView.as_view(),
        name="replay-detail",
    ),
]
