import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from accounts.selectors import token_of
from accounts.services import CreatedToken, token_create, token_revoke, token_use, user_get_or_create
from common.errors import InvalidInput, NotAuthenticated

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db


def make(*, scope: Scope = Scope.READ, lifetime: timedelta = HOUR, name: str = "ci") -> CreatedToken:
    user = user_get_or_create(username="alice", now=timezone.now())
    return token_create(user=user, name=name, scope=scope, lifetime=lifetime, now=NOW, actor="test")


@pytest.mark.parametrize(
    ("held", "asked", "allowed"),
    [
        (Scope.READ, Scope.READ, True),
        (Scope.READ, Scope.WRITE, False),
        (Scope.WRITE, Scope.READ, True),
        (Scope.WRITE, Scope.ADMIN, False),
        (Scope.ADMIN, Scope.WRITE, True),
        (Scope.ADMIN, Scope.ADMIN, True),
    ],
)
def test_each_scope_includes_the_ones_before(held: Scope, asked: Scope, allowed: bool) -> None:
    assert held.includes(asked) is allowed


def test_the_secret_is_nowhere_in_the_database() -> None:
    created = make()
    assert created.secret.startswith("flt_")
    assert len(created.secret) == 4 + 43  # 256 bits in base64
    row = ApiToken.objects.filter(pk=created.token.pk).values().get()
    assert created.secret not in str(row)
    assert row["digest"] == hashlib.sha256(created.secret.encode()).hexdigest()
    assert created.secret not in str(list(AuditEntry.objects.values()))


def test_its_user_has_no_password() -> None:
    assert not make().token.user.has_usable_password()


def test_a_live_token_is_found_by_its_secret() -> None:
    created = make()
    assert token_of(secret=created.secret, now=NOW + HOUR - timedelta(microseconds=1)) == created.token


@pytest.mark.parametrize(
    ("spoil", "at", "told"),
    [
        pytest.param(lambda token: None, NOW + HOUR, "expired at 2026-01-01 13:00 UTC", id="expired"),
        pytest.param(
            lambda token: token_revoke(token=token, now=NOW, actor="test"),
            NOW,
            "revoked at 2026-01-01 12:00",
            id="revoked",
        ),
        pytest.param(
            lambda token: type(token.user).objects.update(is_active=False), NOW, "switched off", id="its user left"
        ),
        pytest.param(lambda token: token.delete(), NOW, "not known here", id="gone"),
    ],
)
def test_what_opens_nothing_says_why(spoil: "object", at: datetime, told: str) -> None:
    created = make()
    spoil(created.token)  # type: ignore[operator]
    with pytest.raises(NotAuthenticated, match=told):
        token_of(secret=created.secret, now=at)


def test_use_is_noted_at_most_once_a_minute() -> None:
    secret = make().secret
    noted = []
    for seconds in (0, 1, 59, 60, 61, 120):
        token = token_use(secret=secret, now=NOW + timedelta(seconds=seconds))
        token.refresh_from_db()
        noted.append((token.last_used_at - NOW).total_seconds())
    assert noted == [0, 0, 0, 60, 60, 120]


def test_use_within_the_minute_only_reads(django_assert_num_queries: "object") -> None:
    secret = make().secret
    token_use(secret=secret, now=NOW)
    with django_assert_num_queries(1):  # type: ignore[operator]
        token_use(secret=secret, now=NOW + timedelta(seconds=30))


def test_revoking_twice_keeps_the_first_time_and_one_audit_entry() -> None:
    token = make().token
    token_revoke(token=token, now=NOW, actor="first")
    token_revoke(token=token, now=NOW + HOUR, actor="second")
    token.refresh_from_db()
    assert token.revoked_at == NOW
    assert [entry.actor for entry in AuditEntry.objects.filter(action="token.revoke")] == ["first"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"name": "a\nb"}, "name", id="a name with a line end"),
        pytest.param({"name": "x" * 101}, "name", id="a long name"),
        pytest.param({"lifetime": timedelta(0)}, "expires_in", id="no life"),
        pytest.param({"lifetime": timedelta(days=4000)}, "expires_in", id="a life of eleven years"),
    ],
)
def test_a_wrong_token_is_refused_and_not_made(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make(**arguments)  # type: ignore[arg-type]
    assert refusal.value.field == field
    assert not ApiToken.objects.exists()
