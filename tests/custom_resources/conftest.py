"""A platform on the database with a fake outside, driven by hand."""

from tests.deployments._support.fixtures import platform

__all__ = ["platform"]
