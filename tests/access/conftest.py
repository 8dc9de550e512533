"""A platform on the database with a fake outside, for services whose callers have keys."""

from tests.deployments._support.fixtures import platform

__all__ = ["platform"]
