"""Keys of callers."""

from django.urls import path

from access.api import keys

urlpatterns = [
    path("keys", keys.KeyListView.as_view(), name="key-list"),
    path("keys/<str:name>", keys.KeyDetailView.as_view(), name="key-detail"),
    path("keys/<str:name>/rotate", keys.KeyRotateView.as_view(), name="key-rotate"),
]
