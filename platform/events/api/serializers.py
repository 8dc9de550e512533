"""Serializer of events."""

from rest_framework import serializers

from events.selectors import EventView


class EventSerializer(serializers.Serializer[EventView]):
    """An event; `seq` increases by one within the service or the cluster."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    message = serializers.CharField()
    revision = serializers.CharField(allow_null=True, help_text="Name of the revision; null for other events.")
    rollout = serializers.IntegerField(allow_null=True, help_text="Id of the rollout; null for other events.")
    request_id = serializers.CharField(
        allow_null=True, help_text="Id of the request that caused the event; null if none did."
    )
