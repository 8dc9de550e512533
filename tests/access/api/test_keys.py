"""Keys over the API: made once, rotated with an overlap, revoked for good, and what gateways are sent of it."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from joserfc import jwt
from joserfc.jwk import KeySet
from rest_framework.test import APIClient

from access.models import AccessKey, KeyToken, SigningKey
from access.services.gateways import caller_keys, revoked_tokens
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, Identity, User
from accounts.services import teams, user_get_or_create
from integrations.clusters.base import RequestRate, RowRate, TeamRate
from tests import scenes
from usage.models import HourlyUsage

pytestmark = pytest.mark.django_db
BODY = {"name": "ci", "services": ["default/*"]}


def claims_of(token: str) -> dict[str, object]:
    """Return what a token says, verified by the public keys that gateways are sent."""
    public = KeySet.import_key_set({"keys": [dict(each) for each in caller_keys(now=timezone.now()).public]})
    return dict(jwt.decode(token, public, algorithms=["ES256"]).claims)


def test_a_key_is_made_with_a_token_that_is_shown_once(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    made = client.post("/api/v1/keys", {**BODY, "expires_in": "48h"})
    assert made.status_code == 201
    claims = claims_of(made.json()["token"])
    row = KeyToken.objects.get()
    assert (claims["sub"], claims["team"], claims["services"]) == ("ci", "default", ["default/*"])
    assert (claims["iss"], claims["aud"], claims["jti"]) == ("fairlead", "fairlead-gateway", row.token_id)
    assert claims["exp"] - claims["iat"] == 48 * 3600  # type: ignore[operator]
    assert "user" not in claims
    shown = client.get("/api/v1/keys/ci").json()
    assert shown == {name: value for name, value in made.json().items() if name != "token"}
    assert (shown["valid"], shown["tokens"]) == (True, 1)
    assert [each["name"] for each in client.get("/api/v1/keys").json()["results"]] == ["ci"]
    stored = json.dumps([*map(str, KeyToken.objects.values()), *map(str, SigningKey.objects.values())])
    assert made.json()["token"].rsplit(".")[2] not in stored
    assert '"d"' not in stored, "the private key is sealed"
    assert AuditEntry.objects.get(action="key.create").target == "keys/ci"


def test_the_last_use_of_a_key_is_the_newest_of_all_its_tokens(api: Callable[..., APIClient]) -> None:
    client, now = api(Scope.ADMIN), timezone.now()
    ids = [claims_of(client.post("/api/v1/keys", BODY).json()["token"])["jti"]]
    ids.append(claims_of(client.post("/api/v1/keys/ci/rotate", {}).json()["token"])["jti"])
    scenes.access_key("other")
    assert client.get("/api/v1/keys/ci").json()["last_used_at"] is None
    for hours, token_id in enumerate(ids):
        at = now - timedelta(hours=hours)
        HourlyUsage.objects.create(hour=at, namespace="default", service="digits", token_id=token_id, last_at=at)
    shown = {each["name"]: each["last_used_at"] for each in client.get("/api/v1/keys").json()["results"]}
    assert datetime.fromisoformat(shown["ci"]) == now
    assert shown["other"] is None


def test_the_same_request_again_shows_no_token_again(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    first, again = (client.post("/api/v1/keys", BODY, headers={"Idempotency-Key": "1"}) for _ in range(2))
    assert first.status_code == 201
    assert "token" not in again.json()
    assert KeyToken.objects.count() == 1


def test_a_rotated_key_has_two_valid_tokens_until_the_overlap_ends(api: Callable[..., APIClient]) -> None:
    client, now = api(Scope.ADMIN), timezone.now()
    old = claims_of(client.post("/api/v1/keys", BODY).json()["token"])["jti"]
    new = claims_of(client.post("/api/v1/keys/ci/rotate", {"overlap": "2h"}).json()["token"])["jti"]
    assert client.get("/api/v1/keys/ci").json()["tokens"] == 2
    assert caller_keys(now=now).revoked == ()
    assert caller_keys(now=now + timedelta(hours=3)).revoked == (old,)
    client.post("/api/v1/keys/ci/rotate", {"overlap": "0"})
    assert client.get("/api/v1/keys/ci").json()["tokens"] == 1
    assert set(caller_keys(now=timezone.now()).revoked) == {old, new}


def test_a_longer_overlap_gives_no_token_more_time(api: Callable[..., APIClient]) -> None:
    client, now = api(Scope.ADMIN), timezone.now()
    first = claims_of(client.post("/api/v1/keys", BODY).json()["token"])["jti"]
    second = claims_of(client.post("/api/v1/keys/ci/rotate", {"overlap": "1h"}).json()["token"])["jti"]
    client.post("/api/v1/keys/ci/rotate", {"overlap": "3h"})
    assert caller_keys(now=now + timedelta(hours=2)).revoked == (first,)
    assert set(caller_keys(now=now + timedelta(hours=4)).revoked) == {first, second}


def test_a_namespace_gets_the_revoked_tokens_that_could_call_its_services(api: Callable[..., APIClient]) -> None:
    client, revoked = api(Scope.ADMIN), {}
    for name, patterns in {"all": ["*"], "here": ["default/a*"], "other": ["prod/*", "prod/default"]}.items():
        body = {"name": name, "services": patterns}
        revoked[name] = claims_of(client.post("/api/v1/keys", body).json()["token"])["jti"]
        client.delete(f"/api/v1/keys/{name}")
    now = timezone.now()
    assert caller_keys(now=now).revoked == tuple(revoked.values())
    assert revoked_tokens(now=now, namespace="default") == (revoked["all"], revoked["here"])
    assert revoked_tokens(now=now, namespace="prod") == (revoked["all"], revoked["other"])
    assert revoked_tokens(now=now, namespace="pro") == (revoked["all"],)


def test_a_revoked_key_is_refused_and_its_name_is_nobodys(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    token = client.post("/api/v1/keys", BODY).json()["token"]
    assert client.delete("/api/v1/keys/ci").status_code == 204
    assert client.delete("/api/v1/keys/ci").status_code == 204
    assert caller_keys(now=timezone.now()).revoked == (claims_of(token)["jti"],)
    for refused in (client.post("/api/v1/keys", BODY), client.post("/api/v1/keys/ci/rotate", {})):
        assert refused.status_code == 409
    assert not client.get("/api/v1/keys/ci").json()["valid"]
    assert AuditEntry.objects.filter(action="key.revoke").count() == 1


def test_revocations_are_forgotten_once_no_gateways_clock_can_take_the_token(api: Callable[..., APIClient]) -> None:
    api(Scope.ADMIN).post("/api/v1/keys", {**BODY, "expires_in": "1h"})
    api(Scope.ADMIN).delete("/api/v1/keys/ci")
    assert len(caller_keys(now=timezone.now() + timedelta(hours=1)).revoked) == 1
    assert caller_keys(now=timezone.now() + timedelta(hours=2)).revoked == ()


def test_a_key_of_a_person_belongs_to_a_team_of_that_person(api: Callable[..., APIClient]) -> None:
    now = timezone.now()
    user_get_or_create(username="bea", now=now)
    teams.team_create(name="red", actor="root", now=now)
    answer = api(Scope.ADMIN).post("/api/v1/keys", {**BODY, "team": "red", "user": "bea"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (409, "user")
    assert not AccessKey.objects.exists()
    teams.member_set(team="red", username="bea", role=Role.VIEWER, actor="root", now=now)
    assert api(Scope.ADMIN).post("/api/v1/keys", {**BODY, "team": "red", "user": "bea"}).status_code == 201


def test_a_persons_key_says_so_and_is_refused_while_the_person_is_away(api: Callable[..., APIClient]) -> None:
    user_get_or_create(username="bea", now=timezone.now())
    token = api(Scope.ADMIN).post("/api/v1/keys", {**BODY, "user": "bea"}).json()["token"]
    claims = claims_of(token)
    assert claims["user"] == "bea"
    User.objects.filter(username="bea").update(is_active=False)
    assert caller_keys(now=timezone.now()).revoked == (claims["jti"],)
    User.objects.filter(username="bea").update(is_active=True)
    assert caller_keys(now=timezone.now()).revoked == ()
    bea = User.objects.get(username="bea")
    known = Identity.objects.create(user=bea, issuer="https://id.example", subject="1", ended_at=timezone.now())
    assert caller_keys(now=timezone.now()).revoked == (claims["jti"],)
    Identity.objects.filter(pk=known.pk).update(ended_at=None)
    assert caller_keys(now=timezone.now()).revoked == ()


def test_keys_are_seen_and_made_by_team(api: Callable[..., APIClient]) -> None:
    now = timezone.now()
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=now)
        scenes.access_key(f"{team}-ci", team=team)
    user_get_or_create(username="carl", default_role=None, now=now)
    teams.member_set(team="red", username="carl", role=Role.ADMIN, actor="test", now=now)
    client = api(Scope.ADMIN, "carl")
    assert [each["name"] for each in client.get("/api/v1/keys").json()["results"]] == ["red-ci"]
    assert client.get("/api/v1/keys/blue-ci").status_code == 404
    assert client.delete("/api/v1/keys/blue-ci").status_code == 404
    assert client.post("/api/v1/keys", {**BODY, "team": "blue"}).status_code == 404
    assert client.post("/api/v1/keys", {**BODY, "team": "red"}).status_code == 201
    assert AccessKey.objects.get(name="ci").team.name == "red"
    refused = api(Scope.ADMIN).delete("/api/v1/teams/blue")
    assert refused.status_code == 409
    assert "key blue-ci" in refused.content.decode()


def test_the_limit_of_a_key_reaches_gateways_until_it_is_ended_or_the_key_revoked(
    api: Callable[..., APIClient],
) -> None:
    client = api(Scope.ADMIN)
    made = client.post("/api/v1/keys", {**BODY, "requests_per_second": 20}).json()
    assert made["requests_per_second"] == 20
    assert caller_keys(now=timezone.now()).rates == (RequestRate("ci", 20),)
    changed = client.patch("/api/v1/keys/ci", {"requests_per_second": 50})
    assert (changed.status_code, changed.json()["requests_per_second"]) == (200, 50)
    assert AuditEntry.objects.get(action="key.limit").after["requests_per_second"] == 50
    assert client.post("/api/v1/keys/ci/rotate", {}).json()["requests_per_second"] == 50
    assert caller_keys(now=timezone.now()).rates == (RequestRate("ci", 50),)
    assert client.patch("/api/v1/keys/ci", {"requests_per_second": None}).status_code == 200
    assert caller_keys(now=timezone.now()).rates == ()
    client.patch("/api/v1/keys/ci", {"requests_per_second": 50})
    client.delete("/api/v1/keys/ci")
    assert caller_keys(now=timezone.now()).rates == ()
    assert client.patch("/api/v1/keys/ci", {"requests_per_second": 5}).status_code == 409


def test_the_limit_of_a_team_reaches_gateways_until_it_is_ended(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    client.post("/api/v1/teams", {"name": "blue"})
    quota = {"max_versions": 5, "max_bytes": None}
    set_to = client.put("/api/v1/teams/blue/quota", {**quota, "requests_per_second": 200})
    assert (set_to.status_code, set_to.json()["requests_per_second"]) == (200, 200)
    assert caller_keys(now=timezone.now()).team_rates == (TeamRate("blue", 200),)
    assert client.put("/api/v1/teams/blue/quota", quota).json()["requests_per_second"] == 200
    wrong = client.put("/api/v1/teams/blue/quota", {**quota, "requests_per_second": 0})
    assert (wrong.status_code, "requests_per_second" in wrong.content.decode()) == (400, True)
    ended = client.put("/api/v1/teams/blue/quota", {**quota, "requests_per_second": None})
    assert ended.json()["max_versions"] == 5
    assert caller_keys(now=timezone.now()).team_rates == ()


def test_limits_of_rows_reach_gateways_and_stay_where_they_are_not_named(api: Callable[..., APIClient]) -> None:
    client, quota = api(Scope.ADMIN), {"max_versions": 5, "max_bytes": None}
    made = client.post("/api/v1/keys", {**BODY, "rows_per_minute": 6000}).json()
    assert (made["rows_per_minute"], made["requests_per_second"]) == (6000, None)
    changed = client.patch("/api/v1/keys/ci", {"requests_per_second": 50}).json()
    assert (changed["rows_per_minute"], changed["requests_per_second"]) == (6000, 50)
    client.put("/api/v1/teams/default/quota", {**quota, "rows_per_minute": 90_000})
    assert client.put("/api/v1/teams/default/quota", quota).json()["rows_per_minute"] == 90_000
    assert caller_keys(now=timezone.now()).row_rates == (RowRate(6000, key="ci"), RowRate(90_000, team="default"))
    client.put("/api/v1/teams/default/quota", {**quota, "rows_per_minute": None})
    client.patch("/api/v1/keys/ci", {"rows_per_minute": None})
    sent = caller_keys(now=timezone.now())
    assert (sent.row_rates, sent.rates) == ((), (RequestRate("ci", 50),))
    client.patch("/api/v1/keys/ci", {"rows_per_minute": 1})
    client.delete("/api/v1/keys/ci")
    assert caller_keys(now=timezone.now()).row_rates == ()
    for wrong in (0, 1_000_000_001, "many"):
        assert client.put("/api/v1/teams/default/quota", {**quota, "rows_per_minute": wrong}).status_code == 400


@pytest.mark.parametrize("limit", ["requests_per_second", "rows_per_minute"])
@pytest.mark.parametrize("wrong", [0, -1, 1_000_000_001, "many", 1.5])
def test_a_wrong_limit_changes_nothing(api: Callable[..., APIClient], wrong: object, limit: str) -> None:
    client = api(Scope.ADMIN)
    assert client.post("/api/v1/keys", {**BODY, limit: wrong}).status_code == 400
    client.post("/api/v1/keys", BODY)
    refused = client.patch("/api/v1/keys/ci", {limit: wrong})
    assert refused.status_code == 400
    assert limit in refused.content.decode()
    nothing = client.patch("/api/v1/keys/ci", {})
    assert nothing.status_code == 400
    assert "rows_per_minute" in nothing.content.decode()
    assert (caller_keys(now=timezone.now()).rates, caller_keys(now=timezone.now()).row_rates) == ((), ())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Ci"}, "name"),
        ({"name": "fairlead-console"}, "name"),
        ({"services": ["digits"]}, "services"),
        ({"services": []}, "services"),
        ({"expires_in": "0"}, "expires_in"),
        ({"expires_in": "100000h"}, "expires_in"),
        ({"rights": "all"}, "rights"),
    ],
)
def test_a_wrong_field_is_named(api: Callable[..., APIClient], change: dict[str, object], field: str) -> None:
    answer = api(Scope.ADMIN).post("/api/v1/keys", {**BODY, **change})
    assert answer.status_code == 400
    assert field in answer.content.decode()
    assert not AccessKey.objects.exists()
