"""Browsers of people with one role each."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.services import teams, token_create, user_get_or_create
from tests import scenes

Browser = Callable[..., Client]


@pytest.fixture
def browser(db: None) -> Browser:
    """Return a maker of browsers: `browser("red", Role.ADMIN)` is signed in as one with that role in that team only.

    The teams `default` and `red` are there, and in each of them somebody else is admin.
    """
    now = timezone.now()
    scenes.token(Scope.READ, "root")
    teams.team_create(name="red", actor="test", now=now)
    teams.member_set(team="red", username="rita", role=Role.ADMIN, actor="test", now=now)

    def make(team: str | None = "default", role: Role = Role.ADMIN, scope: Scope = Scope.ADMIN) -> Client:
        user = user_get_or_create(username="dora", default_role=None, now=timezone.now())
        if team is not None:
            teams.member_set(team=team, username="dora", role=role, actor="test", now=now)
        made = token_create(user=user, name="d", scope=scope, lifetime=timedelta(hours=1), now=now, actor="test")
        client = Client()
        client.post("/signin/", {"token": made.secret})
        return client

    return make


def page(client: Client, path: str) -> str:
    """Return the text of a page that must be there."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()
