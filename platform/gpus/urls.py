"""Pages of a cluster's GPUs."""

from django.urls import path

from gpus.web import streams, views

urlpatterns = [
    path("platform/clusters/<str:name>/gpus", views.cluster_gpus_page, name="cluster-gpus"),
    path(
        "platform/clusters/<str:name>/repartitions",
        views.repartition_propose_action,
        name="repartition-propose",
    ),
    path(
        "platform/clusters/<str:name>/repartitions/<int:repartition_id>/<slug:verb>",
        views.repartition_action,
        name="repartition-action",
    ),
    path("platform/clusters/<str:name>/gpus/stream", streams.gpu_stream, name="cluster-gpus-stream"),
]
