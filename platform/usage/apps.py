"""Usage of services by caller and hour, and budgets of teams."""

from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "usage"
    label = "usage"
