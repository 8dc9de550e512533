"""Recordings of what clients send, and replays of them."""

from django.apps import AppConfig


class RecordingsConfig(AppConfig):
    name = "recordings"
    label = "recordings"
