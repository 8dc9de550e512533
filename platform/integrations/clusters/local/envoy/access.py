"""Who may call which service, checked by Envoy alone: signed tokens, revoked ones, and each service's callers. Pure.

    jwt_authn        verifies the token's signature, issuer, audience and expiry, and takes it out of the request;
                     what it says goes into metadata, and names into headers that clients cannot set. Tokens of other
                     issuers have metadata and headers of their own: whatever they say, they are no keys
    fairlead-revoked refuses the ids of revoked tokens, and until their month or minute ends keys, teams and services
                     whose quota is used up, and those above a limit of rows
    fairlead-access  refuses callers whom the service, or their token, does not permit

The first two filters are resources of their own (ECDS), so that keys and revocations change while requests go on; the
third is configured by each service's routes. None has a secret: signatures are checked with public keys.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from integrations.clusters.base import CONSOLE, Access, CallerKeys, IssuerKeys
from integrations.clusters.local.envoy.scopes import FOUND_BY, SERVICE_METADATA
from integrations.clusters.local.envoy.values import RowsExceeded

JWT_FILTER = "envoy.filters.http.jwt_authn"
REVOKED_FILTER = "fairlead-revoked"
ACCESS_FILTER = "fairlead-access"
SENT = (JWT_FILTER, REVOKED_FILTER)
"""The filters that the agent sends."""

QUOTA, QUOTA_OF_KEY, QUOTA_OF_SERVICE = "quota", "quota-key", "quota-service"
"""The policies that refuse teams, keys and services whose quota is used up."""
ROWS = "rows"
"""The policy that refuses callers and services above a limit of rows a minute."""

CALLER_HEADER = "fairlead-caller"
"""The caller's name, for the model and its logs."""
KEY_HEADER = "fairlead-key"
"""The token's id."""
TEAM_HEADER = "fairlead-team"
"""The team that owns the key."""
USER_HEADER = "fairlead-user"
"""Whose key it is; absent for that of a program."""
SCOPE_HEADER = "fairlead-scope"
"""Patterns of the services that the key may call; it goes no further than the gateway."""
ISSUER_HEADER = "fairlead-issuer"
SUBJECT_HEADER = "fairlead-subject"
"""`iss` and `sub` of a token of another issuer."""
CALLER_LIMIT_HEADER = "fairlead-caller-limit"
"""How many requests of its caller a replica answers at once; written by a service's routes (limits.py)."""
OURS = (
    CALLER_HEADER,
    KEY_HEADER,
    TEAM_HEADER,
    USER_HEADER,
    SCOPE_HEADER,
    ISSUER_HEADER,
    SUBJECT_HEADER,
    CALLER_LIMIT_HEADER,
)
"""Removed from every request that arrives."""

_TOKENS_IN_CACHE = 4096
"""Verified ones, so that a signature is checked once and not with every request."""

_HTTP = "type.googleapis.com/envoy.extensions.filters.http"
_JWT = f"{_HTTP}.jwt_authn.v3.JwtAuthentication"
_JWT_OF_ROUTE = f"{_HTTP}.jwt_authn.v3.PerRouteConfig"
_RBAC = f"{_HTTP}.rbac.v3.RBAC"
_RBAC_OF_ROUTE = f"{_HTTP}.rbac.v3.RBACPerRoute"
_ACTION = "type.googleapis.com/envoy.config.rbac.v3.Action"
_HEADER = "type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput"
_RESOURCE = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
_CEL = "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
_PROVIDER = "fairlead"
_OF_KEYS = {CALLER_HEADER: "sub", KEY_HEADER: "jti", TEAM_HEADER: "team", USER_HEADER: "user", SCOPE_HEADER: "scope"}
_OF_ISSUERS = {ISSUER_HEADER: "iss", SUBJECT_HEADER: "sub"}
_REQUIRED, _OPTIONAL = "required", "optional"

Json = dict[str, Any]

_ANYBODY: Json = {"allow_missing_or_failed": {}}


def filters() -> list[Json]:
    """Return the filters of the listener, two of which the agent sends.

    None may be `disabled` and enabled by routes: Envoy decides that before `name_by_host` has named the service.
    """
    return [
        sent(JWT_FILTER, _JWT),
        sent(REVOKED_FILTER, _RBAC),
        {"name": ACCESS_FILTER, "typed_config": {"@type": _RBAC}},
    ]


def extension(name: str, keys: CallerKeys, exceeded: RowsExceeded) -> Json:
    """Return the resource of one of the filters in `SENT`."""
    config = _verification(keys) if name == JWT_FILTER else _refusal(keys, exceeded)
    return {"@type": _RESOURCE, "name": name, "typed_config": config}


def of_service(access: Access | None, key: str) -> Json:
    """Return the configuration of both filters for the routes of a service.

    Args:
        access: who may call it; None for everybody, with or without a token.
        key: `<namespace>/<service>`, as tokens name it.
    """
    required = _OPTIONAL if access is None else _REQUIRED
    rules: Json = {} if access is None else {"rbac": {"rules": _callers(access, key)}}
    return {
        JWT_FILTER: {"@type": _JWT_OF_ROUTE, "requirement_name": required},
        ACCESS_FILTER: {"@type": _RBAC_OF_ROUTE, **rules},
    }


def refusals() -> Iterator[tuple[Json, int, str]]:
    """Yield the filter of Envoy's own answers to refused callers, with their status and sentence; the first counts.

    401 is for no token, or one that is worth nothing, and 403 for one that does not suffice.
    """
    ask = "send a key of this installation as `Authorization: Bearer <key>`"
    yield refused_for("rbac_access_denied_matched_policy[revoked]"), 401, f"the key is revoked; {ask}"
    yield refused_for("Jwt_is_missing"), 401, f"this service needs a key; {ask}"
    yield refused_for("Jwt_is_expired"), 401, "the key is expired; rotate it, or ask for another"
    yield refused_for("jwt_authn_access_denied"), 401, f"the key is not one of this installation's; {ask}"
    yield refused_for("rbac_access_denied"), 403, "the key may not call this service; its team decides who may"


def refused_for(part: str) -> Json:
    """Return the filter of Envoy's own answers whose cause, by Envoy's name of it, has this part."""
    return by_expression(f"response.code_details.contains('{part}')")


def by_expression(expression: str) -> Json:
    """Return the filter of Envoy's own answers for which a CEL expression holds."""
    found = {"@type": _CEL, "expression": expression}
    return {"extension_filter": {"name": "envoy.access_loggers.extension_filters.cel", "typed_config": found}}


def sent(name: str, type_url: str) -> Json:
    """Return a filter of the listener whose configuration the agent sends."""
    source = {"resource_api_version": "V3", "ads": {}}
    return {"name": name, "config_discovery": {"config_source": source, "type_urls": [type_url]}}


def _verification(keys: CallerKeys) -> Json:
    """Return the filter that verifies tokens; before there are keys none is valid, and what needs one is refused."""
    providers = {_issuer(each.name): _provider_of(each) for each in keys.issuers if each.public}
    if keys.public:
        providers = {_PROVIDER: _provider(keys.issuer, keys.audience, keys.public, _OF_KEYS), **providers}
    if not providers:
        return {"@type": _JWT, "requirement_map": {_OPTIONAL: _ANYBODY}}
    valid = [{"provider_name": name} for name in providers]
    return {
        "@type": _JWT,
        "providers": providers,
        "requirement_map": {_REQUIRED: _any(valid), _OPTIONAL: _any([*valid, _ANYBODY])},
    }


def _provider_of(issuer: IssuerKeys) -> Json:
    verified = _provider(issuer.issuer, issuer.audience, issuer.public, _OF_ISSUERS)
    return {**verified, "payload_in_metadata": _issuer(issuer.name)}


def _provider(issuer: str, audience: str, public: Sequence[Mapping[str, str]], headers: Mapping[str, str]) -> Json:
    """Return how tokens of an issuer are verified, whose claims become these headers of the request."""
    return {
        "issuer": issuer,
        "audiences": [audience],
        "local_jwks": {"inline_string": json.dumps({"keys": list(public)}, sort_keys=True)},
        "from_headers": [{"name": "authorization", "value_prefix": "Bearer "}],
        "require_expiration": True,
        "forward": False,
        "claim_to_headers": [{"header_name": header, "claim_name": claim} for header, claim in headers.items()],
        "jwt_cache_config": {"jwt_cache_size": _TOKENS_IN_CACHE},
    }


def _any(requirements: list[Json]) -> Json:
    return requirements[0] if len(requirements) == 1 else {"requires_any": {"requirements": requirements}}


def _issuer(name: str) -> str:
    """Return the name of an issuer's provider, and of its metadata."""
    return f"issuer {name}"


def _refusal(keys: CallerKeys, exceeded: RowsExceeded) -> Json:
    """Return the filter that refuses those named, each found in constant time; without any it lets all through.

    Where several match, the token's id counts first, then the team, the key and the service.
    """
    live, rows = _action("live", "ALLOW"), _action(ROWS, "DENY")
    services = {
        **_callers_of_services(exceeded, live, rows),
        **dict.fromkeys(exceeded.services, rows),
        **dict.fromkeys(keys.exhausted_services, _action(QUOTA_OF_SERVICE, "DENY")),
    }
    callers = dict.fromkeys(exceeded.keys, rows)
    callers |= dict.fromkeys(keys.exhausted_keys, _action(QUOTA_OF_KEY, "DENY"))
    teams = dict.fromkeys(exceeded.teams, rows) | dict.fromkeys(keys.exhausted, _action(QUOTA, "DENY"))
    revoked = dict.fromkeys(keys.revoked, _action("revoked", "DENY"))
    found = _of_services(services, live)
    for header, refused in ((CALLER_HEADER, callers), (TEAM_HEADER, teams), (KEY_HEADER, revoked)):
        found = _matched(header, refused, found)
    return {"@type": _RBAC} if found is live else {"@type": _RBAC, **found}


def _of_services(refused: Mapping[str, Json], otherwise: Json) -> Json:
    """Return the match of requests to services, which the header names at its end or before a further `/`."""
    named = {f"/{way}/{service}": match for service, match in refused.items() for way in FOUND_BY}
    below = {f"{name}/": match for name, match in named.items()}
    found = _matched(SERVICE_METADATA, below, otherwise, by="prefix_match_map")
    return _matched(SERVICE_METADATA, named, found)


def _callers_of_services(exceeded: RowsExceeded, live: Json, rows: Json) -> dict[str, Json]:
    """Return by service the match of those of its callers that are above their limit."""
    by_service: dict[str, dict[str, Json]] = {}
    for service, key in exceeded.callers:
        by_service.setdefault(service, {})[key] = rows
    found = {}
    for service, callers in by_service.items():
        # Every header that is present begins with nothing.
        without_key = _matched(CALLER_HEADER, {"": live}, rows, by="prefix_match_map") if "" in callers else live
        found[service] = _matched(CALLER_HEADER, {key: each for key, each in callers.items() if key}, without_key)
    return found


def _matched(header: str, values: Mapping[str, Json], otherwise: Json, *, by: str = "exact_match_map") -> Json:
    """Return the match of a request by a header's value, or by what it begins with."""
    if not values:
        return otherwise
    taken = {"name": header, "typed_config": {"@type": _HEADER, "header_name": header}}
    return {"matcher": {"matcher_tree": {"input": taken, by: {"map": dict(values)}}, "on_no_match": otherwise}}


def _action(name: str, action: str) -> Json:
    return {"action": {"name": name, "typed_config": {"@type": _ACTION, "name": name, "action": action}}}


def _callers(access: Access, key: str) -> Json:
    """Return the rules: a key for this service or a token of an issuer, and one of its callers where it names any."""
    for_this = _header(SCOPE_HEADER, {"safe_regex": {"regex": including(key)}})
    named = [
        *(_header(TEAM_HEADER, {"exact": team}) for team in access.teams),
        *(_header(USER_HEADER, {"exact": user}) for user in access.users),
        *(_header(CALLER_HEADER, {"exact": name}) for name in access.keys),
    ]
    if access == Access():
        of_issuer: Json = {"header": {"name": ISSUER_HEADER, "present_match": True}}
        callers = [for_this, of_issuer]
    else:
        named.append(_header(CALLER_HEADER, {"exact": CONSOLE}))
        callers = [{"and_ids": {"ids": [for_this, {"or_ids": {"ids": named}}]}}, *map(_subject, access.subjects)]
    policy = {"permissions": [{"any": True}], "principals": callers}
    return {"action": "ALLOW", "policies": {"callers": policy}}


def _subject(subject: str) -> Json:
    """Return the principal of `<issuer>:<sub>`, or of `<issuer>:<beginning>*`."""
    issuer, _, name = subject.partition(":")
    match = {"prefix": name[:-1]} if name.endswith("*") else {"exact": name}
    path = [{"key": _issuer(issuer)}, {"key": "sub"}]
    claim = {"filter": JWT_FILTER, "path": path, "value": {"string_match": match}}
    return {"sourced_metadata": {"metadata_matcher": claim}}


def _header(name: str, match: Json) -> Json:
    return {"header": {"name": name, "string_match": match}}


def including(key: str) -> str:
    """Return the expression for a scope with a pattern that includes the service.

    Such patterns are `*`, and any beginning of its name with `*`; of default/digits: `*`, `default/*`, `default/dig*`,
    `default/digits`. Others may be before and after it, separated by spaces.
    """
    namespace, _, service = key.partition("/")
    beginnings = "|".join(re.escape(service[:length]) for length in range(len(service) + 1))
    including_it = rf"\*|{re.escape(namespace)}/({re.escape(service)}|({beginnings})\*)"
    return rf"(.* )?({including_it})( .*)?"
