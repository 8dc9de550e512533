"""Page of the fleet."""

from django.urls import path

from fleet.web import views

urlpatterns = [
    path("platform/fleet/", views.fleet_page, name="fleet"),
    path("platform/fleet/upgrades", views.upgrade_start_action, name="upgrade-start"),
    path("platform/fleet/upgrades/<int:upgrade_id>/<slug:verb>", views.upgrade_action, name="upgrade-action"),
]
