"""Pages of recordings and replays."""

from django.urls import path

from recordings.web import recording_views, streams

urlpatterns = [
    path("services/<str:namespace>/<str:name>/recordings/", recording_views.recording_list_page, name="recording-list"),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/",
        recording_views.recording_detail_page,
        name="recording-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/stream",
        streams.recording_stream,
        name="recording-stream",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/stop",
        recording_views.recording_stop_action,
        name="recording-stop",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/delete",
        recording_views.recording_delete_action,
        name="recording-delete",
    ),
    path(
        "services/<str:namespace>/<str:name>/recordings/<int:recording_id>/replay",
        recording_views.replay_start_action,
        name="replay-start",
    ),
    path(
        "services/<str:namespace>/<str:name>/replays/<int:replay_id>/",
        recording_views.replay_detail_page,
        name="replay-detail",
    ),
    path(
        "services/<str:namespace>/<str:name>/replays/<int:replay_id>/stream",
        streams.replay_stream,
        name="replay-stream",
    ),
]
