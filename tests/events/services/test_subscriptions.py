"""Who manages webhooks, what they are told of, and how their secrets are kept."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams, token_create, user_get_or_create
from common.errors import Unavailable
from deployments.reconcile.restarts import note_components
from events.models import Webhook, WebhookDelivery
from events.services.delivery import try_begin
from events.tasks import deliver
from integrations.clusters.base import Component, Nodes
from registry.domain.version_lifecycle import Refused
from registry.services.version_checks import check_end, checks_begin
from tests import scenes
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
pytestmark = pytest.mark.django_db


@pytest.fixture
def red() -> APIClient:
    """The API as the admin of a team sees it who has no role elsewhere; the team owns the namespace default."""
    now = timezone.now()
    teams.team_create(name="red", actor="test", now=now)
    teams.team_create(name="blue", actor="test", now=now)
    teams.member_set(team="red", username="rita", role=Role.ADMIN, actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    user = user_get_or_create(username="rita", now=timezone.now())
    made = token_create(user=user, name="r", scope=Scope.ADMIN, lifetime=timedelta(hours=1), now=now, actor="test")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.secret}")
    return client


def make(client: APIClient, **asked: Any) -> Any:
    return client.post("/api/v1/webhooks", {"url": "https://a.example/", "events": ["RolloutHealthy"], **asked})


def told(webhook: Webhook) -> list[str]:
    return list(WebhookDelivery.objects.filter(webhook=webhook).order_by("id").values_list("event", flat=True))


def test_an_admin_of_a_team_manages_that_teams_webhooks_only(api: Api, red: APIClient) -> None:
    own, installations = scenes.webhook(team="red").webhook, scenes.webhook().webhook
    assert make(red, team="red").json()["team"] == "red"
    assert make(red, team="blue").status_code == 404
    assert make(red).status_code == 403
    assert {row["team"] for row in red.get("/api/v1/webhooks").json()["results"]} == {"red"}
    assert red.patch(f"/api/v1/webhooks/{own.pk}", {"enabled": False}).status_code == 200
    assert red.patch(f"/api/v1/webhooks/{installations.pk}", {"enabled": False}).status_code == 404
    assert len(api(Scope.ADMIN, "root").get("/api/v1/webhooks").json()["results"]) == 3


def test_a_team_is_told_of_its_own_namespaces_and_models_alone(red: APIClient, platform: Platform) -> None:
    wanted = ("ServiceCreated", "VersionRejected", "ComponentRestarted")
    its, others, all_of_it = (scenes.webhook(*wanted, team=team).webhook for team in ("red", "blue", None))
    now = timezone.now()
    platform.version(1)
    service = platform.apply(policy=None)
    note_components(
        cluster_id=service.cluster_id, nodes=Nodes(components=(Component("envoy", True, 1, "exit 1"),)), now=now
    )
    assert (told(its), told(others)) == (["ServiceCreated"], [])
    assert told(all_of_it) == ["ServiceCreated", "ComponentRestarted"]
    teams.ownership_set(team="blue", kind=Owned.MODEL, name="digits", actor="test", now=now)
    version = platform.version(2)
    type(version).objects.filter(pk=version.pk).update(status="PENDING", next_check_at=now)
    (claim,) = checks_begin(version_id=version.pk, now=now, lease=timedelta(minutes=1))
    assert claim is not None
    assert check_end(claim=claim, outcome=Refused("no ONNX file"), now=now)
    assert (told(its), told(others)) == (["ServiceCreated"], ["VersionRejected"])
    payload = WebhookDelivery.objects.filter(webhook=others).get().payload
    assert (payload["model"], payload["version"], "no ONNX file" in payload["message"]) == ("digits", 2, True)


def test_a_changed_webhook_is_told_of_what_it_asks_for_now(api: Api, platform: Platform) -> None:
    hook = scenes.webhook("RolloutHealthy").webhook
    answer = api(Scope.ADMIN).patch(f"/api/v1/webhooks/{hook.pk}", {"events": ["ServiceCreated", "ServiceCreated"]})
    assert (answer.status_code, answer.json()["events"]) == (200, ["ServiceCreated"])
    platform.version(1)
    platform.apply(policy=None)
    assert told(hook) == ["ServiceCreated"]
    entry = AuditEntry.objects.get(action="webhook.change")
    assert (entry.before["events"], entry.after["events"]) == (["RolloutHealthy"], ["ServiceCreated"])


def test_a_disabled_webhook_is_told_of_nothing_but_tests(api: Api, platform: Platform) -> None:
    admin, hook = api(Scope.ADMIN), scenes.webhook("ServiceCreated", "ServiceChanged").webhook
    platform.version(1)
    platform.version(2)
    platform.apply(policy=None)
    assert admin.patch(f"/api/v1/webhooks/{hook.pk}", {"enabled": False}).json()["enabled"] is False
    platform.apply(policy=None, replicas=2)
    (waiting,) = WebhookDelivery.objects.filter(webhook=hook)
    assert (waiting.event, waiting.status, waiting.answer) == ("ServiceCreated", "FAILED", "the webhook was disabled")
    assert admin.post(f"/api/v1/webhooks/{hook.pk}/test").json()["status"] == "PENDING"


def test_what_was_told_is_told_again_under_its_first_id(api: Api) -> None:
    admin, hook = api(Scope.ADMIN), scenes.webhook().webhook
    log = f"/api/v1/webhooks/{hook.pk}/deliveries"
    first = admin.post(f"/api/v1/webhooks/{hook.pk}/test").json()["id"]
    assert admin.post(f"{log}/{first}/redeliver").status_code == 409, "it is under way"
    WebhookDelivery.objects.update(status="DELIVERED")
    again = admin.post(f"{log}/{first}/redeliver").json()
    WebhookDelivery.objects.update(status="DELIVERED")
    third = admin.post(f"{log}/{again['id']}/redeliver").json()
    assert admin.get(f"{log}/{third['id']}").json() == third
    attempt = try_begin(delivery_id=third["id"], now=timezone.now())
    assert attempt is not None
    assert json.loads(attempt.body)["id"] == first
    assert attempt.headers(timezone.now())["Fairlead-Delivery"] == str(first)
    assert admin.post(f"{log}/999/redeliver").status_code == 404


def test_the_secret_is_encrypted_and_needs_the_key_it_was_kept_under(settings: Settings, platform: Platform) -> None:
    made = scenes.webhook("ServiceCreated")
    assert made.secret not in made.webhook.sealed_secret
    platform.version(1)
    platform.apply(policy=None)
    settings.SECRET_KEY = "another-" + "y" * 40
    (delivery,) = WebhookDelivery.objects.all()
    attempt = try_begin(delivery_id=delivery.pk, now=platform.clock())
    assert attempt is not None
    with pytest.raises(Unavailable, match="cannot be read with the present FAIRLEAD_SECRET_KEY"):
        attempt.headers(timezone.now())
    WebhookDelivery.objects.update(next_try_at=timezone.now(), tries=0)
    deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.tries, "FAIRLEAD_SECRET_KEY" in delivery.answer) == ("PENDING", 1, True)


def test_a_new_secret_replaces_the_old_one(api: Api) -> None:
    made = scenes.webhook()
    answer = api(Scope.ADMIN).post(f"/api/v1/webhooks/{made.webhook.pk}/secret")
    assert (answer.status_code, answer.json()["secret"].startswith("whsec_")) == (201, True)
    assert answer.json()["secret"] != made.secret
    test = api(Scope.ADMIN).post(f"/api/v1/webhooks/{made.webhook.pk}/test").json()["id"]
    attempt = try_begin(delivery_id=test, now=timezone.now())
    assert attempt is not None
    old = {**attempt.headers(timezone.now())}["Fairlead-Signature"]
    assert old.startswith("t=")
    assert AuditEntry.objects.filter(action="webhook.renew_secret").exists()


def test_a_team_with_webhooks_is_not_deleted(api: Api, red: APIClient) -> None:
    hook = scenes.webhook(team="blue").webhook
    answer = api(Scope.ADMIN, "root").delete("/api/v1/teams/blue")
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        409,
        f"team 'blue' has webhook {hook.pk}; delete that first; a team with keys stays, "
        "since usage and the audit log name them: remove its members instead",
    )


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"url": "ftp://a.example/"}, "url", id="another scheme"),
        pytest.param({"url": "https:///path"}, "url", id="no host"),
        pytest.param({"url": "https://user:pw@a.example/"}, "url", id="a user in it"),
        pytest.param({"url": "https://a.example/ x"}, "url", id="a space in it"),
        pytest.param({"events": []}, "events", id="no events"),
        pytest.param({"events": ["Nothing"]}, "events", id="an event that there is not"),
        pytest.param({"colour": "red"}, "colour", id="a field that there is not"),
    ],
)
def test_a_wrong_webhook_is_refused_by_its_field(api: Api, asked: dict[str, Any], field: str) -> None:
    admin, hook = api(Scope.ADMIN), scenes.webhook().webhook
    for answer in (make(admin, **asked), admin.patch(f"/api/v1/webhooks/{hook.pk}", asked)):
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


def test_the_secret_is_shown_once_and_every_change_is_in_the_audit_log(api: Api) -> None:
    admin = api(Scope.ADMIN)
    made = make(admin).json()
    assert "secret" not in admin.get(f"/api/v1/webhooks/{made['id']}").json()
    assert admin.delete(f"/api/v1/webhooks/{made['id']}").status_code == 204
    assert Webhook.objects.count() == 0
    entries = AuditEntry.objects.filter(target=f"webhooks/{made['id']}").order_by("id")
    assert [entry.action for entry in entries] == ["webhook.create", "webhook.delete"]
    assert made["secret"] not in str([entry.after for entry in entries])
    assert admin.patch(f"/api/v1/webhooks/{made['id']}", {}).status_code == 400
