"""Fixtures of the tests of access: browsers of people with one role each, and a platform with a fake outside."""

from tests.accounts._support.pages import browser
from tests.deployments._support.fixtures import platform

__all__ = ["browser", "platform"]
