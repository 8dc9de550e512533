"""Audit log queries: filters, field differences of an entry's before and after, and the page of its object."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q
from django.urls import NoReverseMatch, reverse

from common.http.filters import Filter, Kind
from common.identifiers import token_prefix


class _ByUser(Filter):
    """Entries of a user, with any token; `fairlead` is the platform itself."""

    def condition(self, text: str) -> Q:
        """Return the condition for the user's name."""
        super().condition(text)
        return Q(actor=text) | Q(actor__startswith=token_prefix(text))


class _Under(Filter):
    """Entries of an object and of its children."""

    def condition(self, text: str) -> Q:
        """Return the condition for the object's path."""
        super().condition(text)
        path = text.strip("/")
        return Q(target=path) | Q(target__startswith=f"{path}/")


FILTERS = (
    Filter("actor", "actor", "Filter by actor: `alice (token ci)`, or `fairlead` for the platform itself."),
    _ByUser("user", "actor", "Filter by user, with any token: `alice`, or `fairlead` for the platform itself."),
    Filter("action", "action", "Filter by action, such as `policy.apply`."),
    Filter("target", "target", "Filter by the object's path in the API, such as `models/digits/versions/2`."),
    _Under("under", "target", "Filter by an object and its children, such as `models/digits`."),
    Filter("target_prefix", "target__startswith", "Filter by a prefix of that path, such as `models/digits/`."),
    Filter("request_id", "request_id", "Filter by request id."),
    Filter("since", "at__gte", "Filter by time: entries at or after it.", Kind.MOMENT),
    Filter("until", "at__lt", "Filter by time: entries before it.", Kind.MOMENT),
)


_EMPTY = (None, '""', "null", "{}", "[]")
_VERSION = r"models/(?P<model>[^/]+)/versions/(?P<number>\d+)"
_PAGES = (
    (f"{_VERSION}/builds/(?P<build_id>\\d+)", "deployments:build-detail"),
    (f"{_VERSION}/tunings/(?P<tuning_id>\\d+)", "deployments:tuning-detail"),
    (r"models/(?P<name>[^/]+)/versions/(?P<number>\d+)(?P<under>/.+)?", "registry:version-detail"),
    (r"models/(?P<name>[^/]+)(?P<under>/.+)?", "registry:model-detail"),
    (r"services/(?P<namespace>[^/]+)/(?P<name>[^/]+)(?P<under>/.+)?", "deployments:service-detail"),
    (r"fleet/upgrades/\d+", "deployments:fleet"),
    (r"clusters/(?P<name>[^/]+)/repartitions/\d+", "deployments:cluster-gpus"),
    (r"clusters/(?P<name>[^/]+)", "deployments:cluster-detail"),
    (r"policies/(?P<name>[^/]+)", "deployments:policy-detail"),
    (r"webhooks/(?P<webhook_id>\d+)", "deployments:webhook-detail"),
    (r"teams/(?P<team>[^/]+)(?P<under>/.+)?", "accounts:team-detail"),
    (r"tokens/\d+", "accounts:token-list"),
    (r"keys/[^/]+", "access:key-list"),
    (r"users/(?P<user>.+)", "accounts:user-detail"),
)
"""Paths of objects, first match wins, and the names of their pages; children are on their parent's page."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that a change added, changed or removed; None for an absent value."""

    path: str
    before: str | None
    after: str | None


def differences(before: object, after: object) -> tuple[Difference, ...]:
    """Return the fields that differ, by their paths such as `document.spec.predictor.minReplicas`.

    One that was empty or absent, and still is, is left out.
    """
    old, new = _flat(before), _flat(after)
    found = (Difference(path, old.get(path), new.get(path)) for path in dict.fromkeys([*old, *new]))
    return tuple(
        each for each in found if each.before != each.after and not (each.before in _EMPTY and each.after in _EMPTY)
    )


def page_of(target: str, action: str) -> str:
    """Return the address of an object's page by its path in the log; empty where it has none or was deleted."""
    for pattern, name in _PAGES:
        match = re.fullmatch(pattern, target)
        if match is None:
            continue
        said = match.groupdict()
        if not said.pop("under", None) and action.endswith(".delete"):
            return ""
        try:
            return reverse(name, kwargs=said)
        except NoReverseMatch:
            return ""
    return ""


def _flat(value: object, path: str = "") -> dict[str, str]:
    """Return the leaf values by their paths, as text; an empty object or list is a value."""
    if isinstance(value, Mapping) and value:
        parts = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif not path:
        return {}
    else:
        return {path: value if isinstance(value, str) and value else json.dumps(value)}
    return {name: text for at, item in parts for name, text in _flat(item, at).items()}
