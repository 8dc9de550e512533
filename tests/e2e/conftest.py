"""Fixtures of the end-to-end tests."""

from tests.e2e._support.platforms import anywhere, models, platform
from tests.e2e._support.shared import pytest_runtest_teardown, shared_platforms

__all__ = ["anywhere", "models", "platform", "pytest_runtest_teardown", "shared_platforms"]
