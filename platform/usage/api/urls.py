"""Usage and budgets."""

from django.urls import path

from usage.api import budgets, usage

urlpatterns = [
    path("usage", usage.UsageView.as_view(), name="usage"),
    path("usage/export", usage.UsageExportView.as_view(), name="usage-export"),
    path("teams/<str:team>/budget", budgets.BudgetView.as_view(), name="team-budget"),
]
