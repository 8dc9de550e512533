"""Pages of clusters."""

from django.urls import path

from clusters.web import cluster_edit_views, cluster_views

urlpatterns = [
    path("platform/", cluster_views.platform_page, name="platform"),
    path("platform/clusters/new", cluster_edit_views.cluster_edit_page, name="cluster-new"),
    path("platform/clusters/fill", cluster_edit_views.cluster_fill_action, name="cluster-fill"),
    path("platform/clusters/look", cluster_edit_views.cluster_look_action, name="cluster-look"),
    path("platform/clusters/apply", cluster_edit_views.cluster_apply_action, name="cluster-apply"),
    path("platform/clusters/<str:name>/file", cluster_edit_views.cluster_edit_page, name="cluster-file"),
    path("platform/clusters/<str:name>/file/fill", cluster_edit_views.cluster_fill_action, name="cluster-file-fill"),
    path("platform/clusters/<str:name>/file/look", cluster_edit_views.cluster_look_action, name="cluster-file-look"),
    path("platform/clusters/<str:name>/file/apply", cluster_edit_views.cluster_apply_action, name="cluster-file-apply"),
    path("platform/clusters/<str:name>/delete", cluster_edit_views.cluster_delete_action, name="cluster-delete"),
    path("platform/clusters/<str:name>/", cluster_views.cluster_page, name="cluster-detail"),
    path("platform/clusters/<str:name>/check", cluster_views.cluster_check_page, name="cluster-check"),
    path("platform/clusters/<str:name>/prices", cluster_views.cluster_prices_action, name="cluster-prices"),
]
