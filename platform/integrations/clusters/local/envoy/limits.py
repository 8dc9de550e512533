"""Limits of requests: token buckets of Envoy, which its workers share, and the size of bodies. Pure.

    fairlead-limits-headers  renames Envoy's headers to those of the draft, `RateLimit-*`
    fairlead-limits-callers  limits of keys and teams, over all services; a resource of its own (ECDS)
    fairlead-limits          limits of one service, and of each of its callers; configured by the service's routes
    fairlead-limits-body     size of a body, which is in memory before it goes on; off for services without that limit

All follow the check of keys: who is refused uses up nothing, and a caller is the name of a verified key, which no
client can set. A bucket holds the requests of one second and refills continuously. Where a limit changes, the buckets
of its filter begin full. Requests at once of each caller are counted by the replicas, since Envoy counts none by
caller: the routes send them their share of the limit in a header.
"""

from collections.abc import Iterator
from typing import Any

from integrations.clusters.base import CallerKeys, Limits
from integrations.clusters.local.envoy.access import (
    CALLER_HEADER,
    CALLER_LIMIT_HEADER,
    QUOTA,
    QUOTA_OF_KEY,
    QUOTA_OF_SERVICE,
    ROWS,
    TEAM_HEADER,
    refused_for,
    sent,
)

HEADERS_FILTER = "fairlead-limits-headers"
CALLERS_FILTER = "fairlead-limits-callers"
SERVICE_FILTER = "fairlead-limits"
BODY_FILTER = "fairlead-limits-body"
SENT = (HEADERS_FILTER, CALLERS_FILTER)
"""The filters that the agent sends."""

MAX_CALLERS = 4096
"""Callers of a service whose buckets are kept; beyond them, who called longest ago begins with a full one."""

NO_KEY = "(no key)"
"""The caller of requests without a key; no key has such a name."""

_TYPES = "type.googleapis.com/envoy.extensions.filters.http"
_LOCAL = f"{_TYPES}.local_ratelimit.v3.LocalRateLimit"
_RENAMING = f"{_TYPES}.header_mutation.v3.HeaderMutation"
_BUFFER = f"{_TYPES}.buffer.v3.Buffer"
_STAT_PREFIX = "limits"
_RESOURCE = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"

Json = dict[str, Any]

_ALWAYS: Json = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
_UNUSED: Json = {"max_tokens": 1, "tokens_per_fill": 1, "fill_interval": "1s"}
"""The bucket that Envoy requires of a route; every request has a caller's bucket, and this one is not consumed."""
_UNBUFFERED: Json = {BODY_FILTER: {"@type": f"{_BUFFER}PerRoute", "disabled": True}}
_OF_NO_SERVICE = 1024 * 1024
"""Largest body of a request that names no service."""


def filters() -> list[Json]:
    """Return the filters of the listener, two of which the agent sends."""
    return [
        sent(HEADERS_FILTER, _RENAMING),
        sent(CALLERS_FILTER, _LOCAL),
        {"name": SERVICE_FILTER, "typed_config": {"@type": _LOCAL, "stat_prefix": _STAT_PREFIX}},
        {"name": BODY_FILTER, "typed_config": {"@type": _BUFFER, "max_request_bytes": _OF_NO_SERVICE}},
    ]


def extension(name: str, keys: CallerKeys) -> Json:
    """Return the resource of one of the filters in `SENT`; where no key and no team has a limit it does nothing."""
    buckets = [_descriptor("key", each.key, each.requests_per_second) for each in keys.rates]
    buckets += [_descriptor("team", each.team, each.requests_per_second) for each in keys.team_rates]
    if name == HEADERS_FILTER:
        config: Json = {"@type": _RENAMING, **(_renaming() if buckets else {})}
    elif buckets:
        looked_up = [_named("key", CALLER_HEADER), _named("team", TEAM_HEADER)]
        config = _enforced() | {"descriptors": buckets, "rate_limits": looked_up}
    else:
        config = {"@type": _LOCAL, "stat_prefix": _STAT_PREFIX}
    return {"@type": _RESOURCE, "name": name, "typed_config": config}


def of_service(limits: Limits) -> Json:
    """Return the configuration of the filters for the routes of a service."""
    rates, most = _rates(limits), limits.request_bytes
    if most is None:
        return rates | _UNBUFFERED
    return rates | {BODY_FILTER: {"@type": f"{_BUFFER}PerRoute", "buffer": {"max_request_bytes": most}}}


def of_replicas(limits: Limits, replicas: int) -> list[Json]:
    """Return the headers for a revision's replicas: the share of each in the requests at once of a caller."""
    most = limits.caller_concurrent_requests
    return [] if most is None else [_written(CALLER_LIMIT_HEADER, str(-(-most // max(replicas, 1))))]


def of_stream(limits: Limits) -> Json:
    """Return what differs for routes of gRPC streams, which never end before their first answer."""
    return {} if limits.request_bytes is None else {"typed_per_filter_config": _UNBUFFERED}


def _rates(limits: Limits) -> Json:
    if limits.requests_per_second is None and limits.caller_requests_per_second is None:
        return {}
    config = _enforced()
    if limits.requests_per_second is None:
        config |= {"token_bucket": _UNUSED, "always_consume_default_token_bucket": False}
    else:
        config["token_bucket"] = _bucket(limits.requests_per_second)
    if limits.caller_requests_per_second is not None:
        config |= {
            "descriptors": [_descriptor("caller", "", limits.caller_requests_per_second)],
            "rate_limits": [_named("caller", CALLER_HEADER), _nameless("caller")],
            "max_dynamic_descriptors": MAX_CALLERS,
        }
    return {SERVICE_FILTER: config, HEADERS_FILTER: {"@type": f"{_RENAMING}PerRoute", **_renaming()}}


def refusals() -> Iterator[tuple[Json, int, str]]:
    """Yield the filter of Envoy's own answers to requests above a limit, with their status and sentence."""
    sentence = (
        "too many requests: a limit of this service, of the key or of its team is reached; send fewer, and try again "
        "after the seconds in Retry-After"
    )
    yield refused_for("local_rate_limited"), 429, sentence
    too_large = "the body of the request is larger than this service takes (spec.limits.requestBytes); send fewer rows"
    yield refused_for("request_payload_too_large"), 413, too_large


def refusals_for_a_time() -> Iterator[tuple[Json, int, str, Json]]:
    """Yield the same for those whom `access.REVOKED_FILTER` refuses until their month or minute ends.

    The last part is the header `Retry-After`, computed from the time of the request: no configuration changes with it.
    """
    for policy, whose in (
        (QUOTA, "by the team's keys"),
        (QUOTA_OF_KEY, "by this key"),
        (QUOTA_OF_SERVICE, "by the requests to this service"),
    ):
        sentence = (
            f"the quota of this month is used up {whose}; an administrator of the installation can raise it, or try "
            "again after the seconds in Retry-After, in the next month"
        )
        yield _refused_by(policy), 429, sentence, _until_next_month()
    too_many = (
        "too many rows: a limit of rows a minute of this service, of the key or of its team is reached; send fewer, "
        "and try again after the seconds in Retry-After, in the next minute"
    )
    yield _refused_by(ROWS), 429, too_many, _until_next_minute()


def _refused_by(policy: str) -> Json:
    return refused_for(f"rbac_access_denied_matched_policy[{policy}]")


def _until_next_month() -> Json:
    """Return the header with the seconds until the month ends in UTC; CEL counts days and months from 0."""
    leap = "(request.time.getFullYear() % 4 == 0 ? 29 : 28)"
    days = f"(request.time.getMonth() in [3, 5, 8, 10] ? 30 : (request.time.getMonth() == 1 ? {leap} : 31))"
    passed = "(request.time.getHours() * 60 + request.time.getMinutes()) * 60 + request.time.getSeconds()"
    return _written("retry-after", f"%CEL(({days} - request.time.getDayOfMonth()) * 86400 - ({passed}))%")


def _until_next_minute() -> Json:
    """Return the header with the seconds until a second after the minute ends, when the agent has opened the gateway.

    In a minute's first second that may be just to come.
    """
    second = "request.time.getSeconds()"
    return _written("retry-after", f"%CEL({second} == 0 ? 1 : 61 - {second})%")


def _enforced() -> Json:
    return {
        "@type": _LOCAL,
        "stat_prefix": _STAT_PREFIX,
        "filter_enabled": _ALWAYS,
        "filter_enforced": _ALWAYS,
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
        "rate_limited_as_resource_exhausted": True,
        # Buckets refill within a second.
        "response_headers_to_add": [_written("retry-after", "1")],
    }


def _bucket(per_second: int) -> Json:
    return {"max_tokens": per_second, "tokens_per_fill": per_second, "fill_interval": "1s"}


def _descriptor(key: str, value: str, per_second: int) -> Json:
    """Return a bucket of the requests with this value; without one, a bucket for every value."""
    return {"entries": [{"key": key, "value": value}], "token_bucket": _bucket(per_second)}


def _named(entry: str, header: str) -> Json:
    """Return the rule that looks for the buckets of `entry` by a header that the check of keys wrote, if it did."""
    return {"actions": [{"request_headers": {"header_name": header, "descriptor_key": entry}}]}


def _nameless(entry: str) -> Json:
    """Return the rule that looks for the bucket of requests without a key."""
    present = {"name": CALLER_HEADER, "present_match": True}
    match = {"descriptor_key": entry, "descriptor_value": NO_KEY, "expect_match": False, "headers": [present]}
    return {"actions": [{"header_value_match": match}]}


def _renaming() -> Json:
    names = ("limit", "remaining", "reset")
    written = [{"append": _written(f"ratelimit-{name}", f"%RESP(x-ratelimit-{name})%")} for name in names]
    removed = [{"remove": f"x-ratelimit-{name}"} for name in names]
    return {"mutations": {"response_mutations": [*written, *removed]}}


def _written(name: str, value: str) -> Json:
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
