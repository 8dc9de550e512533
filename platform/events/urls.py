"""Pages of webhooks."""

from django.urls import path

from events.web import webhook_views

urlpatterns = [
    path("webhooks/", webhook_views.webhook_list_page, name="webhook-list"),
    path("webhooks/<int:webhook_id>/", webhook_views.webhook_detail_page, name="webhook-detail"),
    path("webhooks/<int:webhook_id>/secret", webhook_views.webhook_secret_action, name="webhook-secret"),
    path("webhooks/<int:webhook_id>/switch", webhook_views.webhook_switch_action, name="webhook-switch"),
    path("webhooks/<int:webhook_id>/delete", webhook_views.webhook_delete_action, name="webhook-delete"),
    path("webhooks/<int:webhook_id>/test", webhook_views.webhook_test_action, name="webhook-test"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>", webhook_views.delivery_fragment, name="delivery"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        webhook_views.delivery_repeat_action,
        name="delivery-repeat",
    ),
]
