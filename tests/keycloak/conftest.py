"""A real Keycloak for the tests of this folder, one for all of them."""

from collections.abc import Iterator

import pytest

from tests.browser._support.chromium import browser
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform
from tests.keycloak._support.realm import CLIENT_ID, CLIENT_SECRET, Realm, make_realm
from tests.keycloak._support.server import Keycloak, keycloak
from tests.registry._support.model_files import linear_model
from tests.servers.parts import MissingPartError, skip_or_fail

__all__ = ["browser", "linear_model"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Come last with what ends Keycloak."""
    items.sort(key=lambda item: item.path.name == "test_outage.py")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """Give a running Keycloak."""
    try:
        with keycloak(tmp_path_factory.mktemp("keycloak") / "keycloak.log") as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="session")
def realm_of_platform(server: Keycloak) -> Realm:
    """Make the realm whose clients call models of the platform."""
    return make_realm(server, "corp", fairlead="http://127.0.0.1")


@pytest.fixture(scope="session")
def platform(realm_of_platform: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Start a whole platform whose people sign in at the realm."""
    provider = {
        "FAIRLEAD_OIDC_ISSUER": realm_of_platform.issuer,
        "FAIRLEAD_OIDC_CLIENT_ID": CLIENT_ID,
        "FAIRLEAD_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "FAIRLEAD_EGRESS_ALLOWED_NETWORKS": "127.0.0.0/8",
    }
    with started(tmp_path_factory.mktemp("platform"), **provider) as running:
        yield running
