"""Secrets of services."""

from django.urls import path

from sealed_secrets.api import secrets

urlpatterns = [
    path("secrets", secrets.SecretListView.as_view(), name="secret-list"),
    path("secrets/<str:namespace>/<str:name>", secrets.SecretDetailView.as_view(), name="secret-detail"),
]
