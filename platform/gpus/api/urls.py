"""GPUs and repartitions of a cluster."""

from django.urls import path

from gpus.api import gpus, repartitions

urlpatterns = [
    path("clusters/<str:name>/gpus", gpus.ClusterGpusView.as_view(), name="cluster-gpus"),
    path("clusters/<str:name>/repartitions", repartitions.RepartitionListView.as_view(), name="repartition-list"),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>",
        repartitions.RepartitionDetailView.as_view(),
        name="repartition-detail",
    ),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>/approve",
        repartitions.RepartitionApproveView.as_view(),
        name="repartition-approve",
    ),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>/decline",
        repartitions.RepartitionDeclineView.as_view(),
        name="repartition-decline",
    ),
    path(
        "clusters/<str:name>/repartitions/<int:repartition_id>/abort",
        repartitions.RepartitionAbortView.as_view(),
        name="repartition-abort",
    ),
]
