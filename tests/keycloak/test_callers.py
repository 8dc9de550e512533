"""Programs that call models with tokens of a real Keycloak, at the real gateway of a whole platform."""

from collections.abc import Callable

import pytest

from tests.e2e.harness import Platform
from tests.keycloak._support.calling import IN_FORCE_S, ISSUER, accept, becomes, call, serve
from tests.keycloak._support.realm import Realm, make_realm
from tests.keycloak._support.server import Keycloak

pytestmark = pytest.mark.keycloak


def test_programs_call_a_model_with_tokens_of_keycloak(
    platform: Platform, realm_of_platform: Realm, server: Keycloak, linear_model: Callable[..., bytes]
) -> None:
    realm, model = realm_of_platform, linear_model()
    serve(platform, model, "authenticated")
    token = realm.token("nightly")
    assert call(platform, token).status_code == 401, "of no issuer here"
    accept(platform, realm)
    becomes(platform, token, 200, within_s=IN_FORCE_S)
    assert len(call(platform, token).json()["outputs"][0]["data"]) == 3

    other = make_realm(server, "other", fairlead="http://127.0.0.1")
    wrong = {
        "without the audience": realm.token("elsewhere"),
        "of another realm": other.token("nightly"),
        "of a person, for the control plane": realm.tokens_of_person()["id_token"],
        "to renew others": realm.tokens_of_person()["refresh_token"],
        "none": None,
    }
    assert {name: call(platform, each).status_code for name, each in wrong.items()} == dict.fromkeys(wrong, 401)

    serve(platform, model, f'{{subjects: ["{ISSUER}:{realm.service_account("elsewhere")}"]}}')
    becomes(platform, token, 403)
    serve(platform, model, f'{{subjects: ["{ISSUER}:{realm.service_account("nightly")}"]}}')
    becomes(platform, token, 200)


def test_keycloak_rotates_its_key(
    platform: Platform, realm_of_platform: Realm, linear_model: Callable[..., bytes]
) -> None:
    realm = realm_of_platform
    serve(platform, linear_model(), "authenticated")
    accept(platform, realm)
    before = realm.token("nightly")
    becomes(platform, before, 200)

    sudden = realm.add_key(priority=200)
    new = realm.token("nightly")
    assert call(platform, new).status_code == 401, "until the keys are fetched again, within five minutes"
    refresh(platform)
    becomes(platform, new, 200, within_s=IN_FORCE_S)
    assert call(platform, before).status_code == 200, "signed by the key of before, which Keycloak still publishes"

    # As the documentation recommends: published first, then used.
    announced = realm.add_key(priority=300, is_active=False)
    refresh(platform)
    platform.change("from access.models import TokenIssuer; assert len(TokenIssuer.objects.get().public) == 3")
    becomes(platform, new, 200, within_s=IN_FORCE_S)
    realm.change_key(announced, active="true")
    newest = realm.token("nightly")
    assert realm.signed_by(newest) != realm.signed_by(new)
    assert call(platform, newest).status_code == 200, "at once"

    realm.change_key(sudden, enabled="false")
    refresh(platform)
    becomes(platform, new, 401, within_s=IN_FORCE_S)
    assert call(platform, newest).status_code == 200


def refresh(platform: Platform) -> None:
    """Fetch the issuers' keys, as the worker does every five minutes."""
    platform.change("from access.tasks import refresh_issuers; refresh_issuers()")
