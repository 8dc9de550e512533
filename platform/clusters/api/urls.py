"""Clusters and their prices."""

from django.urls import path

from clusters.api import clusters, prices

urlpatterns = [
    path("clusters", clusters.ClusterListView.as_view(), name="cluster-list"),
    path("clusters/<str:name>", clusters.ClusterDetailView.as_view(), name="cluster-detail"),
    path("clusters/<str:name>/check", clusters.ClusterCheckView.as_view(), name="cluster-check"),
    path("clusters/<str:name>/prices", prices.ClusterPricesView.as_view(), name="cluster-prices"),
    path("clusters/<str:name>/events", clusters.ClusterEventListView.as_view(), name="cluster-event-list"),
]
