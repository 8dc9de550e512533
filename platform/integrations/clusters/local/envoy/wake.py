"""Requests to services that are asleep: they wait in Envoy for a replica (on-demand cluster discovery). Pure.

The routes of such a service name clusters that Envoy does not know. Its filter `on_demand` holds the request, requests
the cluster from the agent, which starts a replica, and goes on once the agent has sent the cluster. The filters that
check callers and limits come before, so that whom they refuse wakes nothing.

    fairlead-wake-limit  bounds how many wait, of one service and of all; by metadata of the routes that wake
    on_demand            holds at most HELD_S; each held request has at most the buffers of its connection (`listener`)
"""

from typing import Any

from integrations.clusters.local.envoy.access import by_expression, refused_for

HELD_S = 60
"""How long a request waits for a replica."""

HELD_OF_SERVICE, HELD_OF_ALL = 128, 512
"""Token buckets that refill within HELD_S: twice as many at most wait at once, so many within a moment."""

MAX_SERVICES = 4096
"""Services whose buckets are kept."""

_TYPES = "type.googleapis.com/envoy.extensions.filters.http"
_LOCAL = f"{_TYPES}.local_ratelimit.v3.LocalRateLimit"
_ON_DEMAND = f"{_TYPES}.on_demand.v3.OnDemand"
_LIMIT_FILTER = "fairlead-wake-limit"
_METADATA = "fairlead.wake"
_SERVICE, _ALL, _WHY = "service", "all", "why"
_BUSY = 503

Json = dict[str, Any]

_ALWAYS: Json = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
_OF_OTHERS: Json = {"max_tokens": 2_000_000_000, "tokens_per_fill": 2_000_000_000, "fill_interval": "1s"}
"""The bucket of requests whose routes name none: those of services that are awake."""


def filters(held_s: float = HELD_S) -> list[Json]:
    """Return the filters of the listener; both do nothing for services that are awake."""
    limit = {
        "@type": _LOCAL,
        "stat_prefix": "wake",
        "filter_enabled": _ALWAYS,
        "filter_enforced": _ALWAYS,
        "status": {"code": _BUSY},
        "token_bucket": _OF_OTHERS,
        "always_consume_default_token_bucket": False,
        "descriptors": [_bucket(_SERVICE, HELD_OF_SERVICE), _bucket(_ALL, HELD_OF_ALL)],
        "rate_limits": [_named(_SERVICE), _named(_ALL)],
        "max_dynamic_descriptors": MAX_SERVICES,
    }
    # Envoy requests further clusters only after the first was sent, or after this time.
    source = {"resource_api_version": "V3", "ads": {}, "initial_fetch_timeout": "0.05s"}
    held = {"@type": _ON_DEMAND, "odcds": {"source": source, "timeout": f"{held_s:g}s"}}
    return [
        {"name": _LIMIT_FILTER, "typed_config": limit},
        {"name": "envoy.filters.http.on_demand", "typed_config": held},
    ]


def routes_filter() -> Json:
    """Return the filter that requests the routes of a service whose scope says that they come on demand.

    It is before the filters that check callers, whose configuration is in the routes.
    """
    return {"name": "fairlead-routes", "typed_config": {"@type": _ON_DEMAND}}


def of_route(service: str) -> Json:
    """Return the metadata of a route whose requests wait; `service` is its key."""
    return {"metadata": {"filter_metadata": {_METADATA: {_SERVICE: service, _ALL: _ALL}}}}


def of_cluster(why: str) -> Json:
    """Return the metadata of a cluster of which no replica could be started: its waiting requests get this answer."""
    return {"metadata": {"filter_metadata": {_METADATA: {_WHY: why}}}}


def failed() -> tuple[Json, str]:
    """Return the cause of Envoy's answer to requests of such a cluster, and the format of the sentence."""
    found = f"'{_METADATA}' in xds.cluster_metadata.filter_metadata"
    return by_expression(found), f"%CLUSTER_METADATA({_METADATA}:{_WHY})%"


def too_many() -> tuple[Json, int, str]:
    """Return Envoy's name of the cause, status and sentence of its answer to requests above the bound."""
    what = "the service is asleep, and as many requests wait for its first replica as may; try again soon"
    return refused_for("local_rate_limited"), _BUSY, what


def too_long(held_s: float = HELD_S) -> tuple[Json, int, str]:
    """Return the same for requests that waited as long as they may."""
    what = f"the service was asleep, and no replica was ready within {held_s:g} s; try again soon"
    return {"response_flag_filter": {"flags": ["NC"]}}, _BUSY, what


def is_busy() -> Json:
    """Return the filter of answers with the status of `too_many`, which others with its flag lack."""
    value = {"default_value": _BUSY, "runtime_key": "fairlead.wake_busy"}
    return {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}}


def retry_after() -> Json:
    """Return the header of both answers."""
    return {"header": {"key": "retry-after", "value": "5"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _bucket(key: str, most: int) -> Json:
    value = "" if key == _SERVICE else _ALL
    bucket = {"max_tokens": most, "tokens_per_fill": most // HELD_S, "fill_interval": "1s"}
    return {"entries": [{"key": key, "value": value}], "token_bucket": bucket}


def _named(key: str) -> Json:
    found = {"key": _METADATA, "path": [{"key": key}]}
    metadata = {"descriptor_key": key, "metadata_key": found, "source": "ROUTE_ENTRY", "skip_if_absent": True}
    return {"actions": [{"metadata": metadata}]}
