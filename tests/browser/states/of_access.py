"""Who may call services: access keys."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from access.models import AccessKey, KeyToken
from access.services.keys import key_create, key_revoke, key_rotate
from accounts.services import user_get_or_create
from accounts.services.teams import team_get
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State


def _keys_busy(_: Stage) -> str:
    now = timezone.now()
    for name in ("nightly", "k" * 63, "old", "lost"):
        scenes.access_key(name)
    AccessKey.objects.filter(name="k" * 63).update(
        requests_per_second=1_000_000,
        rows_per_minute=1_000_000_000,
        services=[f"{'n' * 63}/{'s' * 50}-{each}*" for each in range(3)],
    )
    key_create(
        name="notebook",
        team=team_get(name="default"),
        user=user_get_or_create(username="u" * 150, now=now),
        services=["*"],
        lifetime=timedelta(days=30),
        actor="test",
        now=now,
    )
    key_rotate(name="nightly", overlap=timedelta(hours=24), actor="test", now=now)
    key_revoke(name="lost", actor="test", now=now)
    KeyToken.objects.filter(key__name="old").update(expires_at=now - timedelta(days=3))
    return "/keys/"


def _creates_a_wrong_key(page: Page) -> None:
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Services").fill("digits")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#notices")).to_contain_text("Services has 'digits'")


def _creates_a_key(page: Page) -> None:
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Services").fill("default/*")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("heading", name="Token of key ci")).to_be_visible()


def _opens_limits(page: Page) -> None:
    page.get_by_role("button", name="Limit…").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _opens_rotation(page: Page) -> None:
    page.get_by_role("button", name="Rotate…").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


PAGES: dict[str, PageStates] = {
    "access:key-list": PageStates(
        title="Keys",
        states={
            "empty": State(lambda _: "/keys/", "No keys yet"),
            "busy": State(_keys_busy, "nightly"),
            "busy-issued": State(_keys_busy, "Token of key ci", act=_creates_a_key),
            "busy-limiting": State(_keys_busy, "Limit this key", act=_opens_limits),
            "busy-rotating": State(_keys_busy, "Rotate this key?", act=_opens_rotation),
            "error": State(lambda _: "/keys/", "expected", act=_creates_a_wrong_key, is_refused=True),
        },
    ),
}
