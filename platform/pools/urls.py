"""Pages of model pools."""

from django.urls import path

from pools.web import views

urlpatterns = [
    path("pools/", views.pool_list_page, name="pool-list"),
    path("pools/<str:namespace>/<str:name>", views.pool_page, name="pool-detail"),
]
