"""A whole platform as `fairlead up` starts it (server, worker, Envoy, runtimes), for the tests of a module."""

from tests.browser.whole.desk import desk
from tests.e2e._support.platforms import models, platform
from tests.e2e._support.shared import pytest_runtest_teardown, shared_platforms

__all__ = ["desk", "models", "platform", "pytest_runtest_teardown", "shared_platforms"]
