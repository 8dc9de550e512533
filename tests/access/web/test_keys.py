"""The page of keys."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from access.models import AccessKey, KeyToken
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from usage.models import HourlyUsage

HTMX = {"HX-Request": "true"}
FORM = {"name": "nightly", "team": "default", "services": "default/* fraud/cards", "expires_in": "48h"}


def test_a_viewer_sees_the_keys_of_the_own_teams_and_changes_none(browser: Browser) -> None:
    for team in ("default", "red"):
        scenes.access_key(f"of-{team}", team=team)
    client = browser("red", Role.VIEWER)
    shown = page(client, "/keys/")
    assert "of-red" in shown
    assert "of-default" not in shown
    assert 'id="key-form"' not in shown
    assert "Rotate" not in shown
    for refused in (
        client.post("/keys/", {**FORM, "team": "red"}),
        client.post("/keys/of-red/rotate"),
        client.post("/keys/of-red/revoke"),
        client.post("/keys/of-red/limit", {"rows_per_minute": "1"}),
    ):
        assert refused.status_code == 403
    assert client.post("/keys/of-default/revoke").status_code in {403, 404}
    assert not AccessKey.objects.exclude(revoked_at=None).exists()


def test_a_new_token_is_shown_once_and_the_list_has_its_key(browser: Browser) -> None:
    client = browser()
    answer = client.post("/keys/", FORM, headers=HTMX).content.decode()
    token = answer.split('id="issued-token">')[1].split("<")[0]
    assert token.count(".") == 2
    assert "<html" not in answer
    assert ">nightly</a>" in answer.split('id="keys"')[1]
    assert token not in page(client, "/keys/")
    key = AccessKey.objects.get()
    assert (key.services, key.lifetime_s, key.user) == (["default/*", "fraud/cards"], 48 * 3600, None)


def test_a_rotated_key_shows_until_when_its_previous_token_is_valid(browser: Browser) -> None:
    client = browser()
    scenes.access_key("ci")
    assert not marked(page(client, "/keys/"), "overlap")
    whole = client.post("/keys/ci/rotate", {"overlap": "2h"}).content.decode()
    assert "<html" in whole, "without a script the whole page shows the token"
    assert 'id="issued-token">' in whole
    assert marked(whole, "overlap")
    client.post("/keys/ci/rotate", {"overlap": "0"})
    assert not marked(page(client, "/keys/"), "overlap")
    assert KeyToken.objects.filter(revoked_at=None).count() == 1


def test_the_list_shows_when_a_key_was_last_used(browser: Browser) -> None:
    client, now = browser(), timezone.now()
    scenes.access_key("ci")
    assert marked(page(client, "/keys/"), "last-used") == ["never"]
    token_id = KeyToken.objects.get().token_id
    HourlyUsage.objects.create(hour=now, namespace="default", service="digits", token_id=token_id, last_at=now)
    (shown,) = marked(page(client, "/keys/"), "last-used")
    assert f"{now:%Y-%m-%d %H:%M}" in shown


def test_a_revoked_and_an_expired_key_say_so(browser: Browser) -> None:
    client = browser()
    assert marked(page(client, "/keys/"), "no-keys")
    for name in ("lost", "old"):
        scenes.access_key(name)
    assert client.post("/keys/lost/revoke").status_code == 302
    KeyToken.objects.filter(key__name="old").update(expires_at=timezone.now() - timedelta(days=1))
    shown = page(client, "/keys/")
    assert shown.count('data-state="revoked"') == 1
    assert shown.count('data-state="expired"') == 1
    assert "confirm-rotate-lost" not in shown
    assert client.post("/keys/lost/rotate").status_code == 409


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": "Nightly"}, "a DNS label"),
        ({"services": "digits"}, "expected `*`"),
        ({"services": " "}, "expected 1 to 50"),
        ({"expires_in": "soon"}, "is no duration"),
        ({"user": "stranger"}, "stranger"),
    ],
)
def test_a_wrong_field_is_refused_in_a_sentence(browser: Browser, changed: dict[str, str], sentence: str) -> None:
    answer = browser().post("/keys/", {**FORM, **changed}, headers=HTMX)
    assert answer.status_code in {400, 404}
    assert sentence in answer.content.decode().replace("&#x27;", "'")
    assert not AccessKey.objects.exists()


def test_an_admin_of_a_team_makes_keys_of_that_team_only(browser: Browser) -> None:
    client = browser("red", Role.ADMIN)
    assert client.post("/keys/", FORM).status_code in {403, 404}
    assert client.post("/keys/", {**FORM, "team": "red"}).status_code == 200
    assert AccessKey.objects.get().team.name == "red"
    assert browser("red", Role.ADMIN, Scope.WRITE).post("/keys/", {**FORM, "team": "red"}).status_code == 403


def test_the_list_asks_as_often_for_many_keys_as_for_one(
    browser: Browser, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = browser()
    for number in range(12):
        scenes.access_key(f"k-{number}")
    with django_assert_max_num_queries(12):
        client.get("/keys/")


def test_limits_are_shown_and_set(browser: Browser) -> None:
    scenes.access_key("ci")
    client = browser()
    assert not marked(page(client, "/keys/"), "key-limits")
    client.post("/keys/ci/limit", {"requests_per_second": "20", "rows_per_minute": "9000"})
    (shown,) = marked(page(client, "/keys/"), "key-limits")
    assert ("20 requests a second" in shown, "9,000 rows a minute" in shown) == (True, True)
    for wrong in ({"rows_per_minute": "0"}, {"requests_per_second": "1.5"}, {"rows_per_minute": "1000000001"}):
        assert client.post("/keys/ci/limit", wrong).status_code == 400
    client.post("/keys/ci/limit", {"requests_per_second": "", "rows_per_minute": "9000"})
    assert AccessKey.objects.values_list("requests_per_second", "rows_per_minute").get() == (None, 9000)
    client.post("/keys/ci/revoke")
    assert client.post("/keys/ci/limit", {"rows_per_minute": "1"}).status_code == 409
