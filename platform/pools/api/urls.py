"""Model pools."""

from django.urls import path

from pools.api import views

urlpatterns = [
    path("model-pools", views.PoolListView.as_view(), name="model-pool-list"),
    path("model-pools/<str:namespace>/<str:name>", views.PoolDetailView.as_view(), name="model-pool-detail"),
    path(
        "model-pools/<str:namespace>/<str:name>/services",
        views.PoolServiceListView.as_view(),
        name="model-pool-services",
    ),
]
