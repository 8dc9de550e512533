"""Browsers of people with one role each."""

from tests.accounts._support.pages import browser

__all__ = ["browser"]
