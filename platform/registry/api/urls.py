"""Addresses of the registry under `/api/v1/`."""

from django.urls import URLPattern

app_name = "registry_api"
urlpatterns: list[URLPattern] = []
