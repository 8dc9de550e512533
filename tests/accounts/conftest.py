"""Fixtures of the tests of accounts."""

from tests.accounts._support.pages import browser

__all__ = ["browser"]
