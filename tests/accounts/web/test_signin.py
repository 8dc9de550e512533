"""The sign-in page."""

import pytest
from django.test import Client
from pytest_django.asserts import assertTemplateUsed

from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from tests import scenes

pytestmark = pytest.mark.django_db


def test_a_token_opens_a_session_and_leads_to_the_services(client: Client) -> None:
    response = client.post("/signin/", {"token": scenes.token()})

    assert response.status_code == 302
    assert response["Location"] == "/"
    assert client.get("/services/").status_code == 200


def test_who_is_not_signed_in_is_led_back_to_the_page_asked_for(client: Client) -> None:
    asked = client.get("/services/default/digits/")
    assert asked["Location"] == "/signin/?next=/services/default/digits/"

    form = client.get(asked["Location"])
    assert 'name="next" value="/services/default/digits/"' in form.content.decode()
    signed_in = client.post("/signin/", {"token": scenes.token(), "next": "/services/default/digits/"})

    assert signed_in["Location"] == "/services/default/digits/"


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("https://elsewhere.example/", id="another host"),
        pytest.param("//elsewhere.example/", id="another host without a scheme"),
        pytest.param("javascript:alert(1)", id="a script"),
    ],
)
def test_sign_in_leads_nowhere_else(client: Client, target: str) -> None:
    response = client.post("/signin/", {"token": scenes.token(), "next": target})

    assert response["Location"] == "/"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        pytest.param("hunter2", "That is no API token", id="not a token"),
        pytest.param("flt_unknown", "This token is not known here", id="an unknown token"),
        pytest.param("", "That is no API token", id="nothing"),
    ],
)
def test_a_wrong_token_is_told_about_in_the_form(client: Client, typed: str, sentence: str) -> None:
    response = client.post("/signin/", {"token": typed, "next": "/services/default/digits/"})

    page = response.content.decode()
    assert response.status_code == 401
    assert sentence in page
    assert 'aria-invalid="true"' in page
    assert "/services/default/digits/" in page
    assert typed not in page or not typed
    assert client.get("/services/").status_code == 302


def test_signing_out_ends_the_session_and_needs_a_form(client: Client) -> None:
    client.post("/signin/", {"token": scenes.token()})

    assert client.get("/signout/").status_code == 405
    assert client.post("/signout/")["Location"] == "/signin/"
    assert client.get("/services/").status_code == 302


def test_a_form_from_elsewhere_is_refused_with_a_page() -> None:
    client = Client(enforce_csrf_checks=True)

    response = client.post("/signin/", {"token": scenes.token()})

    assert response.status_code == 403
    assertTemplateUsed(response, "403_csrf.html")


def test_the_session_ends_with_its_token(client: Client) -> None:
    client.post("/signin/", {"token": scenes.token(Scope.READ, "leaver")})
    assert client.get("/services/").status_code == 200

    token = ApiToken.objects.get(name="leaver")
    token.revoked_at = token.created_at
    token.save()

    assert client.get("/services/").status_code == 302
