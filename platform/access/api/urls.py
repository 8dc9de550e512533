"""Keys of callers, and issuers."""

from django.urls import path

from access.api import issuers, keys

urlpatterns = [
    path("keys", keys.KeyListView.as_view(), name="key-list"),
    path("keys/<str:name>", keys.KeyDetailView.as_view(), name="key-detail"),
    path("keys/<str:name>/rotate", keys.KeyRotateView.as_view(), name="key-rotate"),
    path("issuers", issuers.IssuerListView.as_view(), name="issuer-list"),
    path("issuers/<str:name>", issuers.IssuerDetailView.as_view(), name="issuer-detail"),
]
