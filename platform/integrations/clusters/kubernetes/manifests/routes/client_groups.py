"""Client group of a canary as header matches of the Gateway API. Pure.

The Gateway API compares a header with one whole value or, where an implementation has it, with a regular expression
(HTTPHeaderMatch, GRPCHeaderMatch: `Exact` is core, `RegularExpression` implementation-specific in syntax and support).
Several values are therefore several matches, and a prefix is an expression, which `gateway_features.py` allows only
where the gateway is known to support them.

A rule for the group wins over the same rule for everyone: of matches with the same path and method, or the same gRPC
method, the one with more headers comes first (HTTPRouteRule.matches, GRPCRouteRule.matches), in any route.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from common.errors import InvalidInput
from integrations.clusters.base import HeaderMatch, MatchKind
from integrations.clusters.kubernetes.manifests.names import Manifest

# A route has 128 matches at most and one of its rules 64 (HTTPRouteSpec.rules, GRPCRouteSpec.rules); each alternative
# has 16 in an HTTPRoute, with explain requests, and 11 in a GRPCRoute, of which 10 are in the rule for what reads.
PER_ROUTE = 5
_MOST = 64
EMPTY_GROUP: Sequence[Sequence[Manifest]] = (({"type": "Exact", "name": "fairlead-group", "value": "none"},),)
"""The match of a group's route while the group is empty."""


def is_closed(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule matches no request, since each of its matches is of an empty group."""
    closed = EMPTY_GROUP[0][0]
    return all(closed in match.get("headers", ()) for match in rule.get("matches", ({},)))


def alternatives(match: Sequence[HeaderMatch]) -> list[list[Manifest]]:
    """Return the lists of header matches of which one has to hold; empty for an empty group.

    Raises:
        InvalidInput: the values of `anyOf` make more combinations than routes are made for.
    """
    if not match:
        return []
    found = [list(each) for each in product(*(_values(header) for header in match))]
    if len(found) > _MOST:
        raise InvalidInput(
            f"match has {len(found)} combinations of values; on Kubernetes each is a match of its own, and {_MOST} can "
            "be made; name fewer values",
            field="match",
        )
    return found


def by_route(match: Sequence[HeaderMatch]) -> Iterator[list[list[Manifest]]]:
    """Yield the alternatives of each route of a group."""
    found = alternatives(match)
    for first in range(0, len(found), PER_ROUTE):
        yield found[first : first + PER_ROUTE]


def needs_expressions(match: Sequence[HeaderMatch]) -> bool:
    """Return whether the gateway has to compare headers with regular expressions."""
    return any(header.kind is MatchKind.PREFIX for header in match)


def to_json(groups: Mapping[str, Sequence[HeaderMatch]]) -> str:
    """Return groups by revision as text."""
    written = {revision: [asdict(header) for header in match] for revision, match in groups.items()}
    return json.dumps(written, sort_keys=True)


def from_json(text: str) -> dict[str, tuple[HeaderMatch, ...]]:
    """Return the groups that `to_json` wrote; none for an empty text."""
    return {
        revision: tuple(HeaderMatch(each["header"], MatchKind(each["kind"]), tuple(each["values"])) for each in match)
        for revision, match in json.loads(text or "{}").items()
    }


def _values(header: HeaderMatch) -> Iterator[Manifest]:
    for value in header.values:
        if header.kind is MatchKind.PREFIX:
            # Anchored: whether all of the value has to match is the implementation's.
            yield {"type": "RegularExpression", "name": header.header, "value": f"^{re.escape(value)}.*$"}
        else:
            yield {"type": "Exact", "name": header.header, "value": value}
