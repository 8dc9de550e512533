"""Header routing and session affinity of the canary, read from and written to the policy file. Pure.

A header is one of the HTTP request, or an entry of the gRPC call's metadata.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from common import durations
from common.document import Document
from common.errors import InvalidInput
from integrations.clusters.base import HeaderMatch, MatchKind, SessionAffinity

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_TEXT = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?")
_MOST_VALUES = 20
# HTTP and the gateway use these to find the service, or remove them; no group can be matched by them.
_RESERVED = ("host", "connection", "content-length", "te", "transfer-encoding", "fairlead-service", "fairlead-shadow")


def parse_match(step: Document) -> tuple[HeaderMatch, ...]:
    """Return the group of a step's `match`, empty for none; raise InvalidInput by the field."""
    if step.raw("match", None) is None:
        return ()
    match = tuple(_header_match(document) for document in step.documents("match"))
    if not match:
        raise InvalidInput(
            f"{step.path('match')} is empty, which would be everybody; name a header, such as "
            "[{header: x-group, exact: beta}]",
            field=step.path("match"),
        )
    return match


def _header_match(document: Document) -> HeaderMatch:
    header = _header(document)
    given = [kind for kind in MatchKind if document.raw(kind.value, None) is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise InvalidInput(
            f"{document.path('header')} is compared by {found}; say one of exact, prefix or anyOf",
            field=document.path("header"),
        )
    [kind] = given
    values = _any_of(document) if kind is MatchKind.ANY_OF else (document.text(kind.value),)
    for value in values:
        if not _TEXT.fullmatch(value):
            raise InvalidInput(
                f"{document.path(kind.value)} is {value[:60]!r}; expected 1 to 200 printable ASCII characters without "
                "spaces around them",
                field=document.path(kind.value),
            )
    document.refuse_unknown()
    return HeaderMatch(header, kind, values)


def _any_of(document: Document) -> tuple[str, ...]:
    values = document.raw("anyOf")
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise InvalidInput(
            f"{document.path('anyOf')} is no list of texts; such as [beta, staff]", field=document.path("anyOf")
        )
    if len(values) > _MOST_VALUES:
        raise InvalidInput(
            f"{document.path('anyOf')} has {len(values)} values; at most {_MOST_VALUES} can be named",
            field=document.path("anyOf"),
        )
    return tuple(values)


def _header(document: Document) -> str:
    header = document.text("header").lower()
    if not _TOKEN.fullmatch(header) or header in _RESERVED or header.startswith("x-envoy-"):
        raise InvalidInput(
            f"{document.path('header')} is {header[:60]!r}; expected the name of a header that clients send, such as "
            "x-group",
            field=document.path("header"),
        )
    return header


def parse_affinity(document: Document) -> SessionAffinity:
    """Return the affinity of `sessionAffinity`; the rollout fills in whose sessions stay."""
    cookie = document.optional("cookie")
    has_header = document.raw("header", None) is not None
    if has_header is (cookie is not None):
        raise InvalidInput(
            f"{document.path('header')} and {document.path('cookie')} are {'both' if has_header else 'not'} there; a "
            "session is known by one of them, such as {header: x-session} or {cookie: {name: session, ttl: 1h}}",
            field=document.path("header"),
        )
    if cookie is None:
        affinity = SessionAffinity("", header=_header(document))
    else:
        affinity = SessionAffinity("", cookie=_cookie_name(cookie), cookie_ttl_s=_ttl_s(cookie))
        cookie.refuse_unknown()
    document.refuse_unknown()
    return affinity


def _cookie_name(document: Document) -> str:
    name = document.text("name")
    if not _TOKEN.fullmatch(name):
        raise InvalidInput(
            f"{document.path('name')} is {name[:60]!r}; expected letters, digits, dots, underscores and hyphens",
            field=document.path("name"),
        )
    return name


def _ttl_s(document: Document) -> int:
    ttl = document.duration("ttl", default=timedelta(hours=1), positive=True)
    if ttl % timedelta(seconds=1):
        raise InvalidInput(
            f"{document.path('ttl')} is {durations.render(ttl)}; a cookie lives for whole seconds",
            field=document.path("ttl"),
        )
    return int(ttl.total_seconds())


def match_json(match: Iterable[HeaderMatch]) -> list[dict[str, object]]:
    """Return the `match` of a step."""
    return [
        {"header": each.header, each.kind.value: list(each.values) if each.kind is MatchKind.ANY_OF else each.values[0]}
        for each in match
    ]


def stored_match(value: Iterable[Mapping[str, object]]) -> tuple[HeaderMatch, ...]:
    """Return the group from the JSON of `match_json`."""
    return tuple(_header_match(Document(each)) for each in value)


def affinity_json(affinity: SessionAffinity) -> dict[str, object]:
    """Return the `sessionAffinity` of a policy."""
    if affinity.header:
        return {"header": affinity.header}
    return {
        "cookie": {"name": affinity.cookie, "ttl": durations.render(timedelta(seconds=affinity.cookie_ttl_s))},
    }


def match_text(match: Iterable[HeaderMatch]) -> str:
    """Return the group as a part of a sentence, such as `x-group: beta and x-region: eu-*`."""
    return " and ".join(str(each) for each in match)
