"""A platform on the database with a fake outside, driven by hand."""

from tests.deployments._support.fixtures import allowed, browser, platform

__all__ = ["allowed", "browser", "platform"]
