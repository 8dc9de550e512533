"""Fixtures of the rooms around services: a platform on the database with a fake outside, driven by hand."""

import pytest

from tests.accounts._support.pages import browser
from tests.deployments._support.platform import Platform
from tests.deployments._support.repartitions import allowed

__all__ = ["allowed", "browser", "platform"]


@pytest.fixture
def platform(db: None) -> Platform:
    return Platform()
