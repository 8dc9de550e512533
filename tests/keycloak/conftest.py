"""A real Keycloak for the tests of this folder, one for all of them."""

from collections.abc import Iterator

import pytest

from tests.browser._support.chromium import browser
from tests.keycloak._support.server import Keycloak, keycloak
from tests.servers.parts import MissingPartError, skip_or_fail

__all__ = ["browser"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """Give a running Keycloak."""
    import os  # DEBUG
    if os.environ.get("KC_HELD"):  # DEBUG
        held = Keycloak(tmp_path_factory.mktemp("k") / "l"); held.url = "http://127.0.0.1:28123"  # DEBUG
        yield held  # DEBUG
        return  # DEBUG
    try:
        with keycloak(tmp_path_factory.mktemp("keycloak") / "keycloak.log") as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)
