"""Log records of Envoy Gateway's Envoys, and the service that each route belongs to. Pure.

The Gateway is the operator's, who configures its access log as docs/reference/usage.md says. Its fields are those of a
line but for route and backend, by their names in Kubernetes; what these belong to is looked up as the sums are stored.
Routes of services that do not exist are the operator's own. Callers are in the metadata of verified tokens: headers of
refused requests, and at public services, are the client's own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime, timedelta

from integrations.clusters.base import PREVIEW_SUFFIX
from integrations.clusters.base.logged_requests import BadEntryError, LoggedRequest, request_of, text, time_of
from integrations.clusters.kubernetes.manifests.names import revision_of
from usage.domain.line import Group, Read, Sums

LONGEST_AGO = timedelta(days=1)
"""How far a record may be from now: no Envoy keeps one for so long, and clocks do not differ so much."""
MOST_GROUPS = 10_000
"""Groups that are summed at once; requests of further ones do not count."""

_ABSENT = "-"
_NUMBERS = ("status", "grpc_status", "bytes_in", "bytes_out", "model_us", "attempts")
_NUMBER = re.compile("[0-9]{1,12}")
"""As much as a terabyte, or eleven days."""
_ROUTE = re.compile(r"(?P<address>.+?)(-version-[0-9]+|-match(-[0-9]+)?)?(-host)?")
"""A route's name (`manifests.routes`) and the address that it is of: a service or its preview."""


def read_records(records: Iterable[Mapping[str, str]], now: datetime) -> Read:
    """Return the sums of records by route; bad ones are counted and skipped."""
    read = Read()
    for record in records:
        try:
            read.add(_request(record, now))
        except BadEntryError as error:
            read.skip(error)
    return read


def _request(record: Mapping[str, str], now: datetime) -> LoggedRequest | None:
    said: dict[str, object] = {name: value for name, value in record.items() if value != _ABSENT}
    if abs(time_of(said) - now) > LONGEST_AGO:
        raise BadEntryError(f"time is {said['time']}; expected one within a day of now, {now:%Y-%m-%dT%H:%M:%SZ}")
    for name in _NUMBERS:
        if _NUMBER.fullmatch(found := str(said.get(name, ""))):
            said[name] = int(found)
    said.setdefault("attempts", 0)
    namespace, route = text(said, "namespace"), text(said, "route")
    service = f"{namespace}/{route}" if namespace else ""
    return request_of({**said, "service": service}, revision_of(text(said, "backend")))


def merge(into: dict[Group, Sums], added: Mapping[Group, Sums], most: int) -> int:
    """Add sums to others; returns how many requests found no place, since there are so many groups already."""
    left_out = 0
    for group, sums in added.items():
        if group not in into and len(into) >= most:
            left_out += sums.requests
            continue
        into.setdefault(group, Sums()).include(sums)
    return left_out


def by_service(sums: Mapping[Group, Sums], services: Set[tuple[str, str]]) -> tuple[dict[Group, Sums], int]:
    """Return the sums by service, or preview of one, and how many requests are of none.

    Args:
        sums: whose groups have names of routes in place of services.
        services: namespaces and names of those that exist.
    """
    found: dict[Group, Sums] = {}
    others = 0
    for group, its in sums.items():
        address = next(_addresses(group, services), None)
        if address is None:
            others += its.requests
            continue
        service = address.removesuffix(PREVIEW_SUFFIX)
        revision = group.revision if group.revision.startswith(f"{service}-") else ""
        merge(found, {replace(group, service=address, revision=revision): its}, len(sums))
    return found, others


def _addresses(group: Group, services: Set[tuple[str, str]]) -> Iterator[str]:
    """Yield the addresses of existing services that a route may be of, the longest first."""
    route = group.service
    whole = _ROUTE.fullmatch(route)
    for address in (route, route.removesuffix("-host"), whole["address"] if whole else ""):
        if {(group.namespace, address), (group.namespace, address.removesuffix(PREVIEW_SUFFIX))} & services:
            yield address
