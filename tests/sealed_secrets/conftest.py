"""A platform with a fake outside."""

from tests.deployments._support.fixtures import platform

__all__ = ["platform"]
