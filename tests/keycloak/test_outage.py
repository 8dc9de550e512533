"""What goes on while Keycloak is down, and what people read who sign in then. The tests end Keycloak."""

import html
from collections.abc import Callable

import httpx
import pytest

from tests.e2e.harness import Platform
from tests.keycloak._support.calling import accept, becomes, call, serve
from tests.keycloak._support.realm import Realm
from tests.keycloak._support.server import Keycloak

pytestmark = pytest.mark.keycloak


def test_tokens_still_open_models_and_a_sign_in_says_what_is_wrong(
    platform: Platform, realm_of_platform: Realm, server: Keycloak, linear_model: Callable[..., bytes]
) -> None:
    serve(platform, linear_model(), "authenticated")
    accept(platform, realm_of_platform)
    token = realm_of_platform.token("nightly")
    platform.change(_REFRESH)
    becomes(platform, token, 200)

    server.stop()
    platform.change(_REFRESH)
    with platform.client() as client:
        assert "did not answer" in client.get("issuers/corp")["failure"]
    assert call(platform, token).status_code == 200
    answer = httpx.get(f"{platform.url}/signin/provider/", timeout=30)
    assert answer.status_code == 503
    host = server.url.removeprefix("http://")
    assert f"{host} does not answer; try again later, or ask an administrator." in html.unescape(answer.text).lower()


_REFRESH = "from access.tasks import refresh_issuers; refresh_issuers()"
