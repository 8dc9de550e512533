"""Fixtures of the end-to-end tests."""

from tests.e2e._support.platforms import anywhere, models, platform

__all__ = ["anywhere", "models", "platform"]
