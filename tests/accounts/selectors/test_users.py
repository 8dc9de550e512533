"""Users over the API and on pages: who there is, and who is let in no more."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, Identity, User
from accounts.services import teams, user_get_or_create
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
URL = "/api/v1/users"
STRANGE = "x/switch@example.com ünï"


@pytest.fixture
def bob() -> User:
    """Return a user who came from a provider and is in two teams."""
    scenes.token(Scope.READ, "bob")
    now = timezone.now()
    teams.team_create(name="blue", actor="test", now=now)
    teams.member_set(team="blue", username="bob", role=Role.VIEWER, actor="test", now=now)
    user = User.objects.get(username="bob")
    Identity.objects.create(user=user, issuer="https://id.example", subject="b-1")
    return user


def test_users_are_listed_with_roles_and_how_they_sign_in(api: Api, bob: User) -> None:
    admin = api(Scope.ADMIN)
    rows = admin.get(URL).json()["results"]
    shown = next(row for row in rows if row["name"] == "bob")
    assert shown["provider"] == "https://id.example"
    assert shown["roles"] == {"blue": "viewer", "default": "admin"}
    assert (shown["active"], shown["last_seen_at"]) == (True, None)
    assert [row["name"] for row in rows] == sorted(row["name"] for row in rows)
    assert admin.get(f"{URL}?team=blue").json()["results"] == [shown]
    assert admin.get(f"{URL}/bob").json() == shown
    assert admin.get(f"{URL}/nobody").status_code == 404


def test_a_user_is_switched_off_for_a_reason_and_on_again(api: Api, bob: User) -> None:
    admin, his = api(Scope.ADMIN), APIClient()
    his.credentials(HTTP_AUTHORIZATION=f"Bearer {scenes.token(Scope.READ, 'bob')}")
    assert his.get("/api/v1/whoami").status_code == 200
    assert admin.get(f"{URL}/bob").json()["last_seen_at"] is not None
    off = admin.patch(f"{URL}/bob", {"active": False, "reason": " has left "}, format="json")
    assert (off.status_code, off.json()["active"]) == (200, False)
    assert his.get("/api/v1/whoami").status_code == 401
    entry = AuditEntry.objects.get(action="user.switch")
    assert (entry.target, entry.detail, entry.after) == ("users/bob", {"reason": "has left"}, {"active": False})
    assert admin.patch(f"{URL}/bob", {"active": True, "reason": "back"}, format="json").json()["active"]
    assert his.get("/api/v1/whoami").status_code == 200


@pytest.mark.parametrize(
    ("user", "body", "status"),
    [
        pytest.param("bob", {"active": False}, 400, id="without a reason"),
        pytest.param("bob", {"active": False, "reason": "x" * 301}, 400, id="a long reason"),
        pytest.param("nobody", {"active": False, "reason": "x"}, 404, id="nobody"),
        pytest.param(None, {"active": False, "reason": "x"}, 409, id="himself"),
    ],
)
def test_a_switch_that_cannot_be_is_refused(
    api: Api, bob: User, user: str | None, body: dict[str, object], status: int
) -> None:
    admin = api(Scope.ADMIN)
    user = user or admin.get("/api/v1/whoami").json()["user"]
    assert admin.patch(f"{URL}/{user}", body, format="json").status_code == status
    assert not User.objects.filter(is_active=False).exists()


def test_a_name_is_freed(api: Api, bob: User) -> None:
    assert api(Scope.ADMIN).delete(f"{URL}/bob/identity").status_code == 204
    assert not Identity.objects.exists()
    assert api(Scope.ADMIN).delete(f"{URL}/bob/identity").status_code == 404


def test_the_pages_show_a_user_with_teams_tokens_and_what_happened(browser: Browser, bob: User) -> None:
    client = browser()
    user_get_or_create(username=STRANGE, default_role=None, now=timezone.now())
    listed = page(client, "/users/")
    assert 'href="/users/bob/"' in listed
    assert "https://id.example" in listed
    assert 'blue <span class="tag">viewer</span>' in listed
    assert "bob" not in page(client, "/users/?name=dor")
    shown = page(client, "/users/bob/")
    for text in ("b-1", "Switch bob off?", "user.create", "blue"):
        assert text in shown
    assert marked(page(client, "/users/dora/"), "not-oneself")
    assert STRANGE.split("@")[1] in page(client, f"/users/{STRANGE}/"), "any name has its page"
    assert client.get("/users/nobody/").status_code == 404


def test_a_switch_on_the_page_names_the_reason_and_is_seen(browser: Browser, bob: User) -> None:
    client = browser()
    assert client.post("/users/bob/switch", {"state": "off", "reason": ""}).status_code == 400
    assert client.post("/users/bob/switch", {"state": "off", "reason": "has left"}).status_code == 302
    shown = page(client, "/users/bob/")
    for text in ("switched off", "has left", "Let bob in again?"):
        assert text in shown
    assert client.post("/users/bob/switch", {"state": "on", "reason": "back"}).status_code == 302
    assert client.post("/users/bob/free").status_code == 302
    assert User.objects.get(username="bob").is_active
    assert not Identity.objects.exists()


@pytest.mark.parametrize("who", [("default", Role.DEPLOYER), ("red", Role.ADMIN)], ids=["a deployer", "a team's admin"])
def test_pages_are_for_who_administers_the_installation(browser: Browser, bob: User, who: tuple[str, Role]) -> None:
    client: Client = browser(*who)
    assert client.get("/users/").status_code == 403
    assert client.get("/users/bob/").status_code == 403
    assert client.post("/users/bob/switch", {"state": "off", "reason": "x"}).status_code == 403
    assert client.post("/users/bob/free").status_code == 403
    assert "/users/" not in page(client, "/")
    assert User.objects.get(username="bob").is_active


def test_the_number_of_queries_does_not_depend_on_how_many_there_are(api: Api, browser: Browser, bob: User) -> None:
    client, admin = browser(), api(Scope.ADMIN)
    admin.get(URL)  # the token's first use is noted

    def counts() -> list[int]:
        found = []
        for ask in (lambda: client.get("/users/"), lambda: client.get("/users/bob/"), lambda: admin.get(URL)):
            with CaptureQueriesContext(connection) as seen:
                assert ask().status_code == 200
            found.append(len(seen))
        return found

    before = counts()
    for name in ("ann", "cleo", "dan"):
        scenes.token(Scope.READ, name)
        scenes.token(Scope.READ, "bob")
    assert counts() == before
