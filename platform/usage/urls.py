"""Pages of usage."""

from django.urls import path

from usage.web import usage_page

urlpatterns = [
    path("usage/", usage_page.usage_page, name="usage"),
    path("usage/budgets/<str:kind>/<path:name>", usage_page.budget_action, name="usage-budget"),
    path("usage/export", usage_page.usage_export, name="usage-export"),
]
