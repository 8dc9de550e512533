"""Webhooks."""

from django.urls import path

from events.api import webhooks

urlpatterns = [
    path("webhooks", webhooks.WebhookListView.as_view(), name="webhook-list"),
    path("webhooks/<int:webhook_id>", webhooks.WebhookDetailView.as_view(), name="webhook-detail"),
    path("webhooks/<int:webhook_id>/deliveries", webhooks.DeliveryListView.as_view(), name="delivery-list"),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>",
        webhooks.DeliveryDetailView.as_view(),
        name="delivery-detail",
    ),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        webhooks.DeliveryRepeatView.as_view(),
        name="delivery-repeat",
    ),
    path("webhooks/<int:webhook_id>/secret", webhooks.WebhookSecretView.as_view(), name="webhook-secret"),
    path("webhooks/<int:webhook_id>/test", webhooks.WebhookTestView.as_view(), name="webhook-test"),
]
