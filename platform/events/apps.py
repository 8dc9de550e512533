"""Events of services and clusters, and the webhooks that receive them."""

from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "events"
    label = "events"
