"""Secrets of services on the local cluster."""

from django.apps import AppConfig


class SealedSecretsConfig(AppConfig):
    name = "sealed_secrets"
    label = "sealed_secrets"
