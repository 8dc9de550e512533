"""Who may do what: sign-in, teams, tokens, the audit log."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.domain.demand import Demand
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.services import teams
from accounts.services.demands import namespace_demand_set, team_demand_set
from accounts.services.invitations import invitation_create
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State

LONGEST_TEAM = "t" * 63
PROVIDER = "Sign in with Example"


def _provider(stage: Stage) -> str:
    stage.settings.OIDC_ISSUER, stage.settings.OIDC_LABEL = "http://127.0.0.1:1", PROVIDER
    return "/signin/?left=provider"


def _provider_away(stage: Stage) -> str:
    _provider(stage)
    return "/signin/provider/"


def _invitation(stage: Stage) -> str:
    _provider(stage)
    _team_busy(stage)
    secret = invitation_create(username="u" * 150, actor="test", now=timezone.now()).secret
    return f"/signin/invitation/{secret}"


def _invitation_unknown(stage: Stage) -> str:
    _provider(stage)
    return "/signin/invitation/guessed"


def _signs_in_with_nonsense(page: Page) -> None:
    page.get_by_label("API token").fill("flt_nonsense")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()


def _teams_busy(_: Stage) -> str:
    now = timezone.now()
    for name in ("vision", "search", LONGEST_TEAM):
        teams.team_create(name=name, actor="test", now=now)
        teams.member_set(team=name, username="tester", role=Role.ADMIN, actor="test", now=now)
    return "/teams/"


def _makes_a_team_twice(page: Page) -> None:
    page.get_by_label("Name").fill("default")
    page.get_by_role("button", name="Create team").click()
    expect(page.locator("#notices")).to_contain_text("is there already")


def _team_empty(_: Stage) -> str:
    teams.team_create(name="vision", actor="test", now=timezone.now())
    return "/teams/vision/"


def _team_busy(_: Stage) -> str:
    now = timezone.now()
    teams.team_create(name="vision", actor="test", now=now)
    for number, name in enumerate(("alice", "bob", "u" * 150, "Müller-Lüdenscheidt", "carol")):
        role = list(Role)[number % len(Role)]
        teams.member_set(team="vision", username=name, role=role, actor="test", now=now)
    for name in ("production", "n" * 63):
        teams.ownership_set(team="vision", kind=Owned.NAMESPACE, name=name, actor="test", now=now)
    teams.ownership_set(team="vision", kind=Owned.MODEL, name="m" * 128, actor="test", now=now)
    demand = Demand("team vision", ("careful", "p" * 63), 2, signed_in=True)
    team_demand_set(team="vision", demand=demand, actor="test", now=now)
    of_namespace = Demand("namespace production", approvals=3)
    namespace_demand_set(namespace="production", demand=of_namespace, actor="test", now=now)
    return "/teams/vision/"


def _adds_nobody(page: Page) -> None:
    page.get_by_label("User").fill(" ")
    page.get_by_role("button", name="Add member").click()
    expect(page.locator("#notices")).to_contain_text("expected a name")


def _users_busy(_: Stage) -> str:
    _team_busy(_)
    return "/users/"


def _user_busy(_: Stage) -> str:
    _team_busy(_)
    return "/users/alice/"


def _tokens_busy(_: Stage) -> str:
    for number, name in enumerate(("ci", "n" * 100, "notebook", "old", "lost")):
        scenes.token(list(Scope)[number % len(Scope)], name)
    ApiToken.objects.filter(name="ci").update(made_by="a" * 150)
    now = timezone.now()
    ApiToken.objects.filter(name="old").update(expires_at=now - timedelta(days=3))
    ApiToken.objects.filter(name="lost").update(revoked_at=now)
    return "/tokens/"


def _makes_a_wrong_token(page: Page) -> None:
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Lives for").fill("for ever")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#notices")).to_contain_text("is no duration")


def _log_busy(_: Stage) -> str:
    now = timezone.now()
    for name in ("vision", LONGEST_TEAM):
        teams.team_create(name=name, actor="test", now=now)
        for role in Role:
            teams.member_set(team=name, username="bob", role=role, actor="alice (token laptop)", now=now)
    scenes.rollout(scenes.service())
    scenes.webhook(url="https://a.example/" + "y" * 200)
    return "/audit/"


PAGES = {
    "accounts:signin": PageStates(
        title="Sign in",
        states={
            "empty": State(lambda _: "/signin/", "No token yet?", scope=None),
            "busy": State(_provider, "still signed in at the provider", scope=None),
            "error": State(lambda _: "/signin/", "token", act=_signs_in_with_nonsense, scope=None, is_refused=True),
        },
    ),
    "accounts:provider-begin": PageStates(
        title="Sign in",
        states={"error": State(_provider_away, "does not answer", scope=None, status=503, is_refused=True)},
        without={"empty": "it leads to the provider at once", "busy": "it leads to the provider at once"},
    ),
    "accounts:invitation": PageStates(
        title="Invitation",
        states={
            "busy": State(_invitation, "This works once", scope=None),
            "error": State(
                _invitation_unknown, "is not known here", scope=None, status=401, title="Sign in", is_refused=True
            ),
        },
        without={"empty": "an invitation is for a user"},
    ),
    "accounts:team-list": PageStates(
        title="Teams",
        states={
            "empty": State(lambda _: "/teams/", "New team"),
            "busy": State(_teams_busy, LONGEST_TEAM),
            "error": State(lambda _: "/teams/", "is there already", act=_makes_a_team_twice, is_refused=True),
        },
    ),
    "accounts:team-detail": PageStates(
        title="vision",
        states={
            "empty": State(_team_empty, "No members."),
            "busy": State(_team_busy, "Müller-Lüdenscheidt"),
            "error": State(_team_empty, "expected a name", act=_adds_nobody, is_refused=True),
        },
    ),
    "accounts:user-list": PageStates(
        title="Users",
        states={
            "busy": State(_users_busy, "Müller-Lüdenscheidt"),
            "error": State(
                lambda _: "/users/",
                "ou may not",
                scope=Scope.READ,
                status=403,
                title="You may not do this",
                is_refused=True,
            ),
        },
        without={"empty": "who looks at it is a user"},
    ),
    "accounts:user-detail": PageStates(
        title="alice",
        states={
            "busy": State(_user_busy, "vision"),
            "error": State(
                lambda _: "/users/nobody/", "nobody", status=404, title="There is nothing here", is_refused=True
            ),
        },
        without={"empty": "a user has a name, and a team or none"},
    ),
    "accounts:token-list": PageStates(
        title="Tokens",
        states={
            "busy": State(_tokens_busy, "notebook"),
            "error": State(lambda _: "/tokens/", "is no duration", act=_makes_a_wrong_token, is_refused=True),
        },
        without={"empty": "who looks at it has signed in with a token that is in the list"},
    ),
    "accounts:audit-list": PageStates(
        title="Audit log",
        states={
            "empty": State(lambda _: "/audit/?user=nobody", "No entries match"),
            "busy": State(_log_busy, "member.set"),
            "error": State(
                lambda _: "/audit/?since=yesterday",
                "yesterday",
                status=400,
                title="That cannot be done as asked",
                is_refused=True,
            ),
        },
    ),
}
