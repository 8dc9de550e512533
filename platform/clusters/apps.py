"""Clusters: where services run, how they are reached, and what they cost."""

from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "clusters"
    label = "clusters"
