"""Serializer of events."""

from rest_framework import serializers

from events.selectors import EventView


class EventSerializer(serializers.Serializer[EventView]):
    """An event; `seq` increases by one within the service or the cluster."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    message = serializers.CharField()
    revision = serializers.CharField(allow_null=True)
    rollout = serializers.IntegerField(allow_null=True)
    request_id = serializers.CharField(allow_null=True)
