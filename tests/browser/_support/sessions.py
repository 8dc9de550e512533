"""Addresses of all pages, and browsers that are signed in."""

import re
from collections.abc import Iterator

from django.conf import settings as django_settings
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import BrowserContext

from accounts.domain.scopes import Scope
from tests import scenes

SAMPLES = {"path": "x", "str": "x", "int": 1, "slug": "x"}


def routes(
    patterns: list[URLPattern | URLResolver] | None = None, space: str = "", root: str = "/"
) -> Iterator[tuple[str, str]]:
    """Yield the name and an address of each route that is not the API's."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        path = root + re.sub(r"<(?:(\w+):)?\w+>", lambda found: str(SAMPLES[found[1] or "str"]), str(each.pattern))
        if path.startswith("/api/") or str(each.pattern).startswith("^api/"):
            continue
        if isinstance(each, URLResolver):
            yield from routes(each.url_patterns, f"{each.namespace}:" if each.namespace else space, path)
        else:
            yield f"{space}{each.name or each.pattern}", path


def sign_in(context: BrowserContext, server: str, scope: Scope = Scope.ADMIN) -> None:
    """Give the browser the cookie of a session, as signing in does."""
    client = Client()
    client.post("/signin/", {"token": scenes.token(scope)})
    name = django_settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": server}])
