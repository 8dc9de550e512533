"""Usage and budgets."""

from django.urls import path

from usage.api import budgets, usage

urlpatterns = [
    path("usage", usage.UsageView.as_view(), name="usage"),
    path("usage/export", usage.UsageExportView.as_view(), name="usage-export"),
    path("teams/<str:team>/budget", budgets.TeamBudgetView.as_view(), name="team-budget"),
    path("keys/<str:name>/budget", budgets.KeyBudgetView.as_view(), name="key-budget"),
    path("services/<str:namespace>/<str:name>/budget", budgets.ServiceBudgetView.as_view(), name="service-budget"),
]
