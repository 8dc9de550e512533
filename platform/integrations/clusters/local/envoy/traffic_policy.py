"""Traffic policy of requests that name no version: client group, session affinity, or weighted random. Pure.

Envoy chooses among weighted clusters by a random number, or with `use_hash_policy` by a hash of the request: it takes
the hash modulo the weights' sum, 100 here, and goes through the clusters in their order until the weights passed are
more. So the revision whose share rises comes first: its part begins at 0 and only ever grows, and a session in it stays
in it. Envoy hashes the values of headers and cookies alike. A client without the cookie is therefore routed by its
request's id, and gets that id for its cookie: its next request has the same hash. By itself Envoy would make the cookie
from addresses, the same for all clients behind one proxy, and only after the choice.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from integrations.clusters.base import HeaderMatch, MatchKind, SessionAffinity
from integrations.clusters.local.envoy.values import Backend, ServiceRoute

REQUEST_ID = "x-request-id"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """Destination of requests with these headers, among those that no earlier way matched.

    Attributes:
        headers: Envoy's matchers, all of which have to hold.
        backends: receive them by share; in the order that `affinity` needs, if any.
        affinity: None assigns each request at random.
        gives_cookie: the client gets the affinity's cookie with the answer.
    """

    headers: tuple[Json, ...]
    backends: Sequence[Backend]
    affinity: SessionAffinity | None = None
    gives_cookie: bool = False


def ways(service: ServiceRoute) -> Iterator[Way]:
    """Yield the ways of the service's requests that name no version, in matching order."""
    for backend in service.backends:
        if backend.match:
            yield Way(tuple(_matcher(each) for each in backend.match), [replace(backend, share_percent=100)])
    affinity = service.affinity
    if affinity is None or sum(backend.share_percent > 0 for backend in service.backends) < 2:
        yield Way((), service.backends)
        return
    backends = sorted(service.backends, key=lambda backend: backend.revision != affinity.revision)
    if affinity.cookie:
        has_cookie = {"safe_regex": {"regex": rf"(.*;\s*)?{re.escape(affinity.cookie)}=[^;]+(;.*)?"}}
        yield Way(({"name": "cookie", "string_match": has_cookie},), backends, affinity)
    yield Way((), backends, affinity, gives_cookie=bool(affinity.cookie))


def hash_policy(affinity: SessionAffinity) -> list[Json]:
    """Return the hash policy of a route; requests without the hashed values are assigned at random."""
    if affinity.header:
        return [{"header": {"header_name": affinity.header}}]
    return [{"cookie": {"name": affinity.cookie}, "terminal": True}, {"header": {"header_name": REQUEST_ID}}]


def set_cookie(affinity: SessionAffinity, path: str) -> Json:
    """Return the route's response header that sets the cookie for requests below `path`."""
    value = (
        f"{affinity.cookie}=%REQ({REQUEST_ID})%; Path={path}; Max-Age={affinity.cookie_ttl_s}; HttpOnly; SameSite=Lax"
    )
    return {"header": {"key": "set-cookie", "value": value}, "append_action": "APPEND_IF_EXISTS_OR_ADD"}


def _matcher(match: HeaderMatch) -> Json:
    how: Json = {"exact": match.values[0]}
    if match.kind is MatchKind.PREFIX:
        how = {"prefix": match.values[0]}
    if match.kind is MatchKind.ANY_OF:
        how = {"safe_regex": {"regex": "|".join(re.escape(value) for value in match.values)}}
    return {"name": match.header, "string_match": how}
