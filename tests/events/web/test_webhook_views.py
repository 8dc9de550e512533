"""The pages of webhooks."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.services import teams, token_create, user_get_or_create
from events.models import Webhook, WebhookDelivery
from events.services.subscriptions import webhook_test
from tests import scenes
from tests._support.page import marked

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
ASKED = {"url": "https://a.example/", "events": ["RolloutHealthy", "VersionRejected"], "description": "ours"}


def browser(team: str = "default", role: Role = Role.ADMIN, scope: Scope = Scope.ADMIN) -> Client:
    """Return the browser of one who has that role in that team only."""
    now = timezone.now()
    scenes.token(Scope.READ, "root")
    if team != "default":
        teams.team_create(name=team, actor="test", now=now)
    user = user_get_or_create(username="dora", default_role=None, now=timezone.now())
    teams.member_set(team=team, username="dora", role=role, actor="test", now=now)
    made = token_create(user=user, name="d", scope=scope, lifetime=timedelta(hours=1), now=now, actor="test")
    client = Client()
    client.post("/signin/", {"token": made.secret})
    return client


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def test_a_new_webhook_shows_its_secret_once() -> None:
    client = browser()
    made = client.post("/webhooks/", ASKED, headers=HTMX).content.decode()
    hook = Webhook.objects.get()
    assert (hook.events, hook.description, hook.team) == (["RolloutHealthy", "VersionRejected"], "ours", None)
    secret = made.split('id="made-secret">')[1].split("<")[0]
    assert f'<a class="name" href="/webhooks/{hook.pk}/">' in made  # the list, which htmx puts in the place of the old
    assert made.count('hx-swap-oob="true"') == 2
    assert "checked" not in made
    assert secret.startswith("whsec_")
    assert secret not in page(client, "/webhooks/") + page(client, f"/webhooks/{hook.pk}/")
    renewed = client.post(f"/webhooks/{hook.pk}/secret").content.decode()
    assert 'id="made-secret">whsec_' in renewed
    assert secret not in renewed


def test_an_admin_of_a_team_sees_and_makes_that_teams_only() -> None:
    client = browser("red")
    scenes.webhook(url="https://installation.example/")
    scenes.webhook(url="https://red.example/", team="red")
    shown = page(client, "/webhooks/")
    assert "https://red.example/" in shown
    assert "https://installation.example/" not in shown
    assert not marked(shown, "for-all")
    assert client.post("/webhooks/", ASKED).status_code == 403
    assert client.post("/webhooks/", {**ASKED, "team": "default"}).status_code == 403
    teams.team_create(name="blue", actor="test", now=timezone.now())
    assert client.post("/webhooks/", {**ASKED, "team": "blue"}).status_code == 404
    assert client.post("/webhooks/", {**ASKED, "team": "red"}).status_code == 200


@pytest.mark.parametrize("verb", ["", "secret", "switch", "delete", "test", "deliveries/1/redeliver"])
@pytest.mark.parametrize(
    ("team", "role", "scope"),
    [
        pytest.param("default", Role.DEPLOYER, Scope.ADMIN, id="a deployer"),
        pytest.param("default", Role.ADMIN, Scope.WRITE, id="a narrower token"),
        pytest.param("blue", Role.ADMIN, Scope.ADMIN, id="an admin of another team"),
    ],
)
def test_who_may_not_manage_it_gets_nowhere(verb: str, team: str, role: Role, scope: Scope) -> None:
    client, hook = browser(team, role, scope), scenes.webhook().webhook
    for ask in (client.get, client.post):
        assert ask(f"/webhooks/{hook.pk}/{verb}").status_code in (403, 404, 405)
    assert Webhook.objects.get().enabled


def test_a_webhook_is_changed_disabled_and_deleted() -> None:
    client, hook = browser(), scenes.webhook().webhook
    at = f"/webhooks/{hook.pk}/"
    answer = client.post(at, {**ASKED, "url": "https://b.example/"}, headers=HTMX)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, at)
    client.post(f"{at}switch", {"enabled": "false"})
    hook.refresh_from_db()
    assert (hook.url, hook.enabled) == ("https://b.example/", False)
    shown = page(client, at)
    assert 'data-state="disabled"' in shown
    assert 'value="VersionRejected" checked' in shown
    assert client.post(f"{at}delete")["Location"] == "/webhooks/"
    assert client.get(at).status_code == 404


def test_a_wrong_form_is_told_about_where_notices_are() -> None:
    answer = browser().post("/webhooks/", {**ASKED, "events": []}, headers=HTMX)
    assert (answer.status_code, answer["HX-Retarget"]) == (400, "#notices")
    assert "Events is empty; choose at least one event" in answer.content.decode()


def test_the_answer_to_a_test_is_followed_until_it_is_there() -> None:
    client, hook = browser(), scenes.webhook().webhook
    begun = client.post(f"/webhooks/{hook.pk}/test", headers=HTMX).content.decode()
    delivery = WebhookDelivery.objects.get()
    at = f"/webhooks/{hook.pk}/deliveries/{delivery.pk}"
    assert f'hx-get="{at}"' in begun
    WebhookDelivery.objects.update(status="FAILED", answer_status=500, answer="<b>oops</b>")
    ended = page(client, at)
    assert "hx-get" not in ended
    assert "<strong>500</strong>" in ended
    assert "&lt;b&gt;oops" in ended
    again = client.post(f"{at}/redeliver", headers=HTMX).content.decode()
    assert marked(again, "answer-awaited")
    assert client.post(f"/webhooks/{hook.pk}/test").status_code == 302, "without a script the page has the log"


def test_the_log_comes_page_by_page_with_as_few_queries(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    client, hook = browser(), scenes.webhook().webhook
    for _ in range(25):
        webhook_test(webhook_id=hook.pk, teams=None, actor="test", now=timezone.now())
    with django_assert_max_num_queries(6):
        first = page(client, f"/webhooks/{hook.pk}/")
    assert first.count('id="payload-') == 20
    before = first.split("?before=")[1].split('"')[0]
    assert page(client, f"/webhooks/{hook.pk}/?before={before}").count('id="payload-') == 5
    for _ in range(30):
        scenes.webhook()
    with django_assert_max_num_queries(6):
        page(client, "/webhooks/")


@pytest.mark.parametrize(("role", "is_led"), [(Role.ADMIN, True), (Role.DEPLOYER, False)])
def test_only_who_has_webhooks_to_manage_is_led_to_them(role: Role, is_led: bool) -> None:
    assert ('href="/webhooks/"' in page(browser("red", role), "/services/")) is is_led


def test_deliveries_show_what_was_posted_and_are_narrowed_to_those_that_failed() -> None:
    client = browser()
    hook = scenes.webhook().webhook
    first = webhook_test(webhook_id=hook.pk, teams=None, actor="test", now=timezone.now())
    second = webhook_test(webhook_id=hook.pk, teams=None, actor="test", now=timezone.now())
    WebhookDelivery.objects.filter(pk=first.pk).update(status="FAILED", answer_status=500, answer="no room")
    WebhookDelivery.objects.filter(pk=second.pk).update(status="DELIVERED", answer_status=204)
    address = f"/webhooks/{hook.pk}/"

    assert f'id="payload-{first.pk}"' in page(client, address)
    assert "&quot;event&quot;: &quot;Test&quot;" in page(client, address)
    failed = page(client, f"{address}?status=FAILED")
    assert f'id="again-{first.pk}"' in failed
    assert f'id="again-{second.pk}"' not in failed
    assert f'hx-get="{address}?status=FAILED"' in failed, "what is fetched anew is narrowed, too"
    assert "No deliveries are pending." in page(client, f"{address}?status=PENDING")
    assert client.get(f"{address}?status=lost").status_code == 400
