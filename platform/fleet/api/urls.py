"""Services that are behind, and upgrades."""

from django.urls import path

from fleet.api import views

urlpatterns = [
    path("fleet/services", views.OutdatedServiceListView.as_view(), name="fleet-services"),
    path("fleet/upgrades", views.UpgradeListView.as_view(), name="upgrade-list"),
    path("fleet/upgrades/<int:upgrade_id>", views.UpgradeDetailView.as_view(), name="upgrade-detail"),
    path("fleet/upgrades/<int:upgrade_id>/services", views.UpgradeServiceListView.as_view(), name="upgrade-services"),
    path("fleet/upgrades/<int:upgrade_id>/pause", views.UpgradePauseView.as_view(), name="upgrade-pause"),
    path("fleet/upgrades/<int:upgrade_id>/resume", views.UpgradeResumeView.as_view(), name="upgrade-resume"),
    path("fleet/upgrades/<int:upgrade_id>/cancel", views.UpgradeCancelView.as_view(), name="upgrade-cancel"),
]
