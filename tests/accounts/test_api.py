from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from accounts.services import token_create, user_get_or_create

Api = Callable[..., APIClient]


def bearer(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def test_whoami(api: Api) -> None:
    answer = api(Scope.WRITE).get("/api/v1/whoami")
    assert answer.status_code == 200
    assert answer.json().keys() == {"user", "token", "scope", "roles", "expires_at"}
    assert answer.json()["roles"] == {"default": "admin"}
    assert (answer.json()["user"], answer.json()["token"], answer.json()["scope"]) == ("alice", "alice-write", "write")


@pytest.mark.parametrize(
    ("header", "told"),
    [
        pytest.param(None, "this needs an API token", id="no header"),
        pytest.param("Bearer flt_unknown", "this token is not known here", id="an unknown token"),
        pytest.param("Bearer", "not of the form", id="no token in it"),
        pytest.param("Basic YTpi", "not of the form", id="another scheme"),
        pytest.param("Bearer a b", "not of the form", id="two words"),
        pytest.param("Bearer \xff\x00", "not known here", id="bytes that are no text"),
    ],
)
def test_without_a_good_token_the_answer_is_401(db: None, header: str | None, told: str) -> None:
    client = APIClient()
    if header is not None:
        client.credentials(HTTP_AUTHORIZATION=header)
    answer = client.get("/api/v1/whoami")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="fairlead"'
    error = answer.json()["error"]
    assert error["code"] == "not_authenticated"
    assert told in error["message"]
    assert error["request_id"] == answer.headers["X-Request-ID"]


@pytest.mark.parametrize(("scope", "role"), [("read", "viewer"), ("write", "deployer"), ("admin", "admin")])
def test_a_user_who_is_made_for_a_token_may_no_more_than_it_needs(api: Api, scope: str, role: str) -> None:
    made = api(Scope.ADMIN).post("/api/v1/tokens", {"name": "ci", "scope": scope, "user": "robot"}).json()
    assert bearer(made["token"]).get("/api/v1/whoami").json()["roles"] == {"default": role}


def test_another_token_does_not_change_what_a_user_may(api: Api) -> None:
    admin = api(Scope.ADMIN)
    admin.post("/api/v1/tokens", {"name": "ci", "scope": "read", "user": "robot"})
    wider = admin.post("/api/v1/tokens", {"name": "wide", "scope": "admin", "user": "robot"}).json()
    assert bearer(wider["token"]).get("/api/v1/whoami").json()["roles"] == {"default": "viewer"}


def test_an_administrator_makes_a_token_that_works_once_shown(api: Api) -> None:
    asked = {"name": "ci", "scope": "write", "expires_in": "12h", "user": "robot"}
    answer = api(Scope.ADMIN).post("/api/v1/tokens", asked)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["name"], body["scope"], body["user"]) == ("ci", "write", "robot")
    lifetime = parse_datetime(body["expires_at"]) - parse_datetime(body["created_at"])
    assert lifetime == timedelta(hours=12)
    mine = bearer(body["token"])
    assert mine.get("/api/v1/whoami").json()["user"] == "robot"
    listed = mine.get("/api/v1/tokens").json()["results"]
    assert [token["name"] for token in listed] == ["ci"]
    assert "token" not in listed[0]
    assert listed[0]["hint"] == body["token"][:8]


def test_without_a_user_or_lifetime_the_token_is_the_callers_and_lives_as_set(api: Api, settings: "object") -> None:
    settings.TOKEN_LIFETIME = timedelta(days=3)  # type: ignore[attr-defined]
    body = api(Scope.ADMIN).post("/api/v1/tokens", {"name": "x"}).json()
    assert (body["user"], body["scope"]) == ("alice", "read")
    assert parse_datetime(body["expires_at"]) - parse_datetime(body["created_at"]) == timedelta(days=3)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "name"),
        ({"name": "x", "scope": "root"}, "scope"),
        ({"name": "x", "expires_in": "soon"}, "expires_in"),
        ({"name": "x", "expires_in": "0s"}, "expires_in"),
        ({"name": "x", "user": "a\u0007b"}, "user"),
    ],
)
def test_a_wrong_token_is_refused_by_its_field(api: Api, asked: dict[str, str], field: str) -> None:
    answer = api(Scope.ADMIN).post("/api/v1/tokens", asked)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_only_administrators_make_tokens(api: Api, scope: Scope) -> None:
    answer = api(scope).post("/api/v1/tokens", {"name": "x"})
    assert answer.status_code == 403
    assert answer.json()["error"]["message"] == (
        f"this needs a token with scope admin; token 'alice-{scope.value}' has scope {scope.value}"
    )


def test_one_sees_and_revokes_his_own_tokens_and_an_administrator_all(api: Api) -> None:
    alice, bob, admin = api(Scope.WRITE), api(Scope.WRITE, "bob"), api(Scope.ADMIN, "root")

    def names(client: APIClient) -> list[str]:
        return [token["name"] for token in client.get("/api/v1/tokens").json()["results"]]

    assert names(alice) == ["alice-write"]
    assert names(admin) == ["root-admin", "bob-write", "alice-write"]
    bobs = ApiToken.objects.get(name="bob-write").pk
    assert [client.get(f"/api/v1/tokens/{bobs}").status_code for client in (alice, bob, admin)] == [404, 200, 200]
    assert "token" not in bob.get(f"/api/v1/tokens/{bobs}").json()
    assert alice.delete(f"/api/v1/tokens/{bobs}").status_code == 404
    assert names(bob) == ["bob-write"]
    assert admin.delete(f"/api/v1/tokens/{bobs}").status_code == 204
    answer = bob.get("/api/v1/whoami")
    assert answer.status_code == 401
    assert "revoked" in answer.json()["error"]["message"]


def test_a_reader_cannot_revoke(api: Api) -> None:
    client = api(Scope.READ)
    own = ApiToken.objects.get().pk
    assert client.delete(f"/api/v1/tokens/{own}").status_code == 403


def test_the_audit_log_names_user_token_and_request(api: Api) -> None:
    answer = api(Scope.ADMIN).post("/api/v1/tokens", {"name": "x"}, headers={"X-Request-ID": "req-9"})
    assert answer.headers["X-Request-ID"] == "req-9"
    entry = AuditEntry.objects.get(request_id="req-9")
    assert (entry.actor, entry.action) == ("alice (token alice-admin)", "token.create")
    assert entry.target == f"tokens/{answer.json()['id']}"


def test_a_list_asks_the_database_as_often_for_many_as_for_one(
    api: Api, django_assert_max_num_queries: "object"
) -> None:
    admin = api(Scope.ADMIN)
    admin.get("/api/v1/tokens")  # notes the use
    for number in range(20):
        api(Scope.READ, f"user-{number}")
    with django_assert_max_num_queries(3):  # the token, its roles, the list  # type: ignore[operator]
        assert len(admin.get("/api/v1/tokens").json()["results"]) == 21


class TestSession:
    """A browser that signed in acts with the scope of its token."""

    @pytest.fixture
    def browser(self, db: None) -> Callable[[Scope], Client]:
        def signed_in(scope: Scope) -> Client:
            created = token_create(
                user=user_get_or_create(username="alice", now=timezone.now()),
                name="browser",
                scope=scope,
                lifetime=timedelta(hours=1),
                now=timezone.now(),
                actor="test",
            )
            client = Client(enforce_csrf_checks=True)
            # What `session_signin` leaves in the session; the sign-in page has its own tests.
            session = client.session
            session["api_token_id"] = created.token.pk
            session.save()
            return client

        return signed_in

    def test_reads(self, browser: Callable[[Scope], Client]) -> None:
        assert browser(Scope.READ).get("/api/v1/whoami").json()["token"] == "browser"

    def test_changes_need_the_csrf_token(self, browser: Callable[[Scope], Client]) -> None:
        client = browser(Scope.ADMIN)
        refused = client.post("/api/v1/tokens", {"name": "x"}, content_type="application/json")
        assert refused.status_code == 403
        assert "CSRF" in refused.json()["error"]["message"]
        client.cookies["csrftoken"] = "a" * 32
        accepted = client.post(
            "/api/v1/tokens", {"name": "x"}, content_type="application/json", headers={"X-CSRFToken": "a" * 32}
        )
        assert accepted.status_code == 201

    def test_ends_when_its_token_is_revoked(self, browser: Callable[[Scope], Client]) -> None:
        client = browser(Scope.READ)
        ApiToken.objects.update(revoked_at=timezone.now())
        assert client.get("/api/v1/whoami").status_code == 401
