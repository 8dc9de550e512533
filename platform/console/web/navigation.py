"""Navigation links of every page, as far as the viewer may follow them; a context processor."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from accounts.auth.access import administered, is_administrator
from accounts.domain.scopes import Scope
from accounts.models import ApiToken

_ALSO = {"Services": ("/pools/",), "Models": ("/deploy/", "/storage/"), "Platform": ("/policies/",)}
"""Pages that belong to a link's and are not below its address."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link; `is_current` where the viewer is at its page or below."""

    label: str
    url: str
    is_current: bool


def navigation(request: HttpRequest) -> dict[str, list[Link]]:
    """Return the links as `navigation`; empty for a viewer who is not signed in."""
    token: ApiToken | None = getattr(request, "token", None)
    if token is None:
        return {"navigation": []}
    views = {
        "Home": "deployments:home",
        "Services": "deployments:service-list",
        "Models": "registry:model-list",
        "Platform": "deployments:platform",
        "Teams": "accounts:team-list",
        "Keys": "access:key-list",
        "Tokens": "accounts:token-list",
        "Usage": "deployments:usage",
    }
    if token.allows(Scope.ADMIN) and administered(token) != frozenset():
        views["Webhooks"] = "deployments:webhook-list"
    if is_administrator(token):
        views["Users"] = "accounts:user-list"
        views["Audit log"] = "accounts:audit-list"
    urls = {label: reverse(view) for label, view in views.items()}
    return {"navigation": [Link(label, url, _is_at(request.path, label, url)) for label, url in urls.items()]}


def _is_at(path: str, label: str, url: str) -> bool:
    return path == url or (url != "/" and path.startswith((url, *_ALSO.get(label, ()))))
