"""A whole platform as `fairlead up` starts it (server, worker, Envoy, runtimes), for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.whole.desk import Desk
from tests.e2e import conftest as e2e
from tests.e2e.harness import Platform

models = e2e.models
platform = e2e.platform


@pytest.fixture
def desk(browser: Browser, platform: Platform, screenshots: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Browsers for one test; it ends well only if all was driven that the test's mark `drives` names."""
    made = Desk(browser, platform, screenshots)
    yield made
    made.close()
    marks = [name for mark in request.node.iter_markers("drives") for name in mark.args]
    assert made.complaints == []
    assert made.driven.lacks(marks) == set()
