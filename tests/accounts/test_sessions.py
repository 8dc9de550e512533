from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from accounts.auth.permissions import page_scope
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from accounts.selectors import token_of_session
from accounts.services import session_signin, session_signout, token_create, user_get_or_create
from common.errors import NotAuthenticated

pytestmark = pytest.mark.django_db


def browser_request() -> HttpRequest:
    request = RequestFactory().get("/services/?page=2")
    request.session = import_module(settings.SESSION_ENGINE).SessionStore()
    request.user = AnonymousUser()
    return request


def secret(*, scope: Scope = Scope.READ, now: datetime | None = None, lifetime: timedelta = timedelta(hours=1)) -> str:
    user = user_get_or_create(username="alice", now=timezone.now())
    at = now or timezone.now()
    return token_create(user=user, name="browser", scope=scope, lifetime=lifetime, now=at, actor="test").secret


def test_signing_in_leaves_the_token_in_the_session_for_as_long_as_it_lives() -> None:
    request, now = browser_request(), timezone.now()
    token = session_signin(request=request, secret=f"  {secret(now=now)}\n", now=now)
    assert request.user == token.user
    assert token_of_session(request=request, now=now) == token
    assert request.session.get_expiry_age() == 3600
    assert AuditEntry.objects.filter(action="session.signin", actor="alice (token browser)").count() == 1


def test_signing_out_forgets_it() -> None:
    request, now = browser_request(), timezone.now()
    session_signin(request=request, secret=secret(now=now), now=now)
    session_signout(request=request, now=now)
    assert token_of_session(request=request, now=now) is None
    session_signout(request=request, now=now)
    assert AuditEntry.objects.filter(action="session.signout", actor="alice (token browser)").count() == 1


@pytest.mark.parametrize(
    ("typed", "told"), [("hunter2", "one begins with flt_"), ("flt_nobody", "not known here"), ("", "no API token")]
)
def test_a_wrong_token_signs_nobody_in(typed: str, told: str) -> None:
    request = browser_request()
    with pytest.raises(NotAuthenticated, match=told):
        session_signin(request=request, secret=typed, now=timezone.now())
    assert dict(request.session) == {}


def test_a_failed_sign_in_is_in_the_audit_log_without_what_was_typed() -> None:
    request, now, revoked = browser_request(), timezone.now(), secret()
    ApiToken.objects.update(revoked_at=now)
    for typed in ("hunter2", "flt_nobody", revoked):
        with pytest.raises(NotAuthenticated):
            session_signin(request=request, secret=typed, now=now)
    entries = AuditEntry.objects.filter(action="session.refuse").order_by("id")
    assert [entry.actor for entry in entries] == ["unknown", "unknown", "alice (token browser)"]
    assert "was revoked" in entries[2].detail["reason"]
    assert entries[2].detail["address"] == "127.0.0.1"
    kept = str([(entry.target, entry.detail) for entry in entries])
    assert not any(typed in kept for typed in ("hunter2", "flt_nobody", revoked))


def test_guessing_does_not_fill_the_audit_log() -> None:
    request, now = browser_request(), timezone.now()
    for number in range(40):
        with pytest.raises(NotAuthenticated):
            session_signin(request=request, secret=f"flt_{number}", now=now)
    assert AuditEntry.objects.filter(action="session.refuse").count() == 30
    with pytest.raises(NotAuthenticated):
        session_signin(request=request, secret="flt_later", now=now + timedelta(minutes=1))
    assert AuditEntry.objects.filter(action="session.refuse").count() == 31


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda: ApiToken.objects.update(revoked_at=timezone.now()), id="revoked"),
        pytest.param(lambda: ApiToken.objects.update(expires_at=datetime(2020, 1, 1, tzinfo=UTC)), id="expired"),
        pytest.param(lambda: ApiToken.objects.all().delete(), id="deleted"),
        pytest.param(lambda: ApiToken.objects.get().user.__class__.objects.update(is_active=False), id="user left"),
    ],
)
def test_a_session_ends_with_its_token(spoil: "object") -> None:
    request, now = browser_request(), timezone.now()
    session_signin(request=request, secret=secret(now=now), now=now)
    spoil()  # type: ignore[operator]
    assert token_of_session(request=request, now=now) is None


class TestPages:
    """`page_scope` in front of a page's view."""

    @staticmethod
    def view(request: HttpRequest, name: str = "") -> HttpResponse:
        return HttpResponse(f"{request.actor} {name}")  # type: ignore[attr-defined]

    def test_a_stranger_is_sent_to_sign_in_and_back(self) -> None:
        answer = page_scope(Scope.READ)(self.view)(browser_request())
        assert answer.status_code == 302
        assert answer["Location"] == "/signin/?next=/services/%3Fpage%3D2"

    def test_the_view_knows_who_asks(self) -> None:
        request = browser_request()
        session_signin(request=request, secret=secret(), now=timezone.now())
        assert page_scope(Scope.READ)(self.view)(request, name="x").content == b"alice (token browser) x"

    def test_too_small_a_scope_is_not_permitted(self) -> None:
        request = browser_request()
        session_signin(request=request, secret=secret(), now=timezone.now())
        with pytest.raises(PermissionDenied, match="scope write; you signed in with scope read"):
            page_scope(Scope.WRITE)(self.view)(request)

    def test_asynchronous_views_are_guarded_too(self) -> None:
        async def stream(request: HttpRequest) -> HttpResponse:
            return HttpResponse(request.actor)  # type: ignore[attr-defined]

        guarded = page_scope(Scope.READ)(stream)
        assert async_to_sync(guarded)(browser_request()).status_code == 302
        request = browser_request()
        session_signin(request=request, secret=secret(), now=timezone.now())
        assert async_to_sync(guarded)(request).content == b"alice (token browser)"
