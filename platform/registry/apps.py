"""Registered models, versions and aliases."""

from django.apps import AppConfig


class RegistryConfig(AppConfig):
    name = "registry"
    label = "registry"
