"""Repartition of GPUs: proposed, approved, carried out on a node."""

from django.apps import AppConfig


class GpusConfig(AppConfig):
    name = "gpus"
    label = "gpus"
