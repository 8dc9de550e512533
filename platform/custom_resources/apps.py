"""Custom resources of Kubernetes clusters."""

from django.apps import AppConfig


class CustomResourcesConfig(AppConfig):
    name = "custom_resources"
    label = "custom_resources"
