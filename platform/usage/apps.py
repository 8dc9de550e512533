"""Usage of services by caller and hour, and budgets."""

from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "usage"
    label = "usage"
