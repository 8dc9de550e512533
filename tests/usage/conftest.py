"""Fixtures of the tests of usage."""

from tests.accounts._support.pages import browser

__all__ = ["browser"]
