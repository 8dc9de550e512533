"""Header routing and session affinity of the canary, read from and written to the policy file. Pure.

A header is one of the HTTP request, or an entry of the gRPC call's metadata.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from common import durations
from common.errors import InvalidInput
from common.files.document import Document
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
    match = step.each("match", _header_match)
    if not match and step.is_sound("match"):
        step.fault(
            "match", "is empty, which would be everybody; name a header, such as [{header: x-group, exact: beta}]"
        )
    return match


def _header_match(document: Document) -> HeaderMatch:
    header = document.text("header", check=_check_header)
    given = [kind for kind in MatchKind if document.raw(kind.value, None) is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        document.fault("header", f"is compared by {found}; say one of exact, prefix or anyOf")
    kind = given[0] if given else MatchKind.EXACT
    values: tuple[str, ...] = ()
    if kind is MatchKind.ANY_OF:
        values = _any_of(document)
    elif given:
        values = (document.text(kind.value),)
    for value in values:
        if not _TEXT.fullmatch(value):
            expected = "expected 1 to 200 printable ASCII characters without spaces around them"
            document.fault(kind.value, f"is {value[:60]!r}; {expected}")
    document.refuse_unknown()
    return HeaderMatch(header, kind, values)


def _any_of(document: Document) -> tuple[str, ...]:
    values = document.raw("anyOf")
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        document.fault("anyOf", "is no list of texts; such as [beta, staff]")
        return ()
    if len(values) > _MOST_VALUES:
        document.fault("anyOf", f"has {len(values)} values; at most {_MOST_VALUES} can be named")
    return tuple(values)


def _check_header(text: str, *, field: str) -> str:
    header = text.lower()
    if not _TOKEN.fullmatch(header) or header in _RESERVED or header.startswith("x-envoy-"):
        raise InvalidInput(
            f"{field} is {header[:60]!r}; expected the name of a header that clients send, such as x-group", field=field
        )
    return header


def parse_affinity(document: Document) -> SessionAffinity:
    """Return the affinity of `sessionAffinity`; the rollout fills in whose sessions stay."""
    cookie = document.optional("cookie")
    has_header = document.raw("header", None) is not None
    if has_header is (cookie is not None):
        document.fault(
            "header",
            f"and {document.path('cookie')} are {'both' if has_header else 'not'} there; a session is known by one of "
            "them, such as {header: x-session} or {cookie: {name: session, ttl: 1h}}",
        )
    if cookie is None:
        affinity = SessionAffinity("", header=document.text("header", check=_check_header))
    else:
        affinity = SessionAffinity("", cookie=cookie.text("name", check=_check_cookie), cookie_ttl_s=_ttl_s(cookie))
        cookie.refuse_unknown()
    document.refuse_unknown()
    return affinity


def _check_cookie(name: str, *, field: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise InvalidInput(
            f"{field} is {name[:60]!r}; expected letters, digits, dots, underscores and hyphens", field=field
        )
    return name


def _ttl_s(document: Document) -> int:
    ttl = document.duration("ttl", default=timedelta(hours=1), positive=True)
    if ttl % timedelta(seconds=1):
        document.fault("ttl", f"is {durations.render(ttl)}; a cookie lives for whole seconds")
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
