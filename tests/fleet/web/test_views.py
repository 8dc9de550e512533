"""The page of the fleet, and what its buttons do."""

import html

import pytest
from django.test import Client

from accounts.domain.scopes import Scope
from deployments.models import Revision
from fleet.domain.waves import Phase, State
from fleet.models import FleetUpgrade, ServiceUpgrade
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db
PAGE = "/platform/fleet/"
FORM = {"cluster": "", "namespace": "", "percent": "50", "at_once": "2"}


@pytest.fixture
def admin() -> Client:
    """An administrator; two services are behind."""
    for name in ("digits", "ranker"):
        scenes.service(name)
    Revision.objects.update(template_changes="image runtime:1 -> runtime:2")
    return signed_in(Scope.ADMIN)


def test_an_upgrade_is_started_paused_resumed_and_cancelled(admin: Client) -> None:
    assert marked(text(admin, PAGE), "behind-count") == [
        "2 services keep pods of an earlier release, image or cluster file."
    ]
    assert admin.post(f"{PAGE}upgrades", FORM)["Location"] == PAGE
    upgrade = FleetUpgrade.objects.get()
    assert (upgrade.percent, upgrade.at_once, upgrade.created_by) == (50, 2, "admin-user (token admin-user)")
    for verb, phase in (("pause", Phase.PAUSED), ("resume", Phase.RUNNING), ("cancel", Phase.CANCELLED)):
        assert marked(text(admin, PAGE), "upgrade")
        admin.post(f"{PAGE}upgrades/{upgrade.pk}/{verb}")
        upgrade.refresh_from_db()
        assert upgrade.phase == phase
        assert verb != "pause" or marked(text(admin, PAGE), "upgrade-message")
    assert not marked(text(admin, PAGE), "upgrade")
    Revision.objects.update(template_changes="")
    assert marked(text(admin, PAGE), "none-behind")


def test_services_of_the_upgrade_are_not_shown_twice_and_what_came_later_is(admin: Client) -> None:
    admin.post(f"{PAGE}upgrades", FORM)
    assert not marked(text(admin, PAGE), "behind")
    Revision.objects.filter(service=scenes.service("words")).update(template_changes="image runtime:1 -> runtime:2")
    [shown] = marked(text(admin, PAGE), "behind")
    assert "default/words" in shown
    assert "default/digits" not in shown


def test_a_failure_is_shown_before_what_waits(admin: Client) -> None:
    admin.post(f"{PAGE}upgrades", FORM)
    ServiceUpgrade.objects.filter(wave=2).update(state=State.FAILED, message="the image cannot be pulled")
    [shown] = marked(text(admin, PAGE), "upgrade")
    assert shown.index("The image cannot be pulled") < shown.index("Waiting image")
    assert "1 Waiting, 1 Failed." in shown


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"percent": "all"}, "percent is 'all'; expected a whole number"),
        ({"percent": "101"}, "percent is 101; expected 1 to 100"),
        ({"at_once": ""}, "at_once is ''; expected a whole number"),
        ({"namespace": "No"}, "namespace is 'No'"),
        ({"cluster": "gone"}, "gone"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_sentence(
    admin: Client, changed: dict[str, str], sentence: str
) -> None:
    answer = admin.post(f"{PAGE}upgrades", {**FORM, **changed})
    assert answer.status_code in {400, 404}
    assert sentence[1:] in html.unescape(answer.content.decode()), "the page begins it with a capital"
    assert not FleetUpgrade.objects.exists()


def test_an_upgrade_has_no_other_actions(admin: Client) -> None:
    admin.post(f"{PAGE}upgrades", FORM)
    assert admin.post(f"{PAGE}upgrades/{FleetUpgrade.objects.get().pk}/undo").status_code == 404
    assert admin.post(f"{PAGE}upgrades/0/pause").status_code == 404


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_it_is_for_administrators(admin: Client, scope: Scope) -> None:
    other = signed_in(scope)
    assert other.get(PAGE).status_code == 403
    assert other.post(f"{PAGE}upgrades", FORM).status_code == 403
    admin.post(f"{PAGE}upgrades", FORM)
    assert other.post(f"{PAGE}upgrades/{FleetUpgrade.objects.get().pk}/cancel").status_code == 403
    assert FleetUpgrade.objects.get().phase == Phase.RUNNING
