"""Cross-origin calls from browsers (CORS), answered by Envoy before keys are checked. Pure.

A preflight carries no key, so this filter comes before those of `access.py`; it answers it for the origins of the
service. Browsers attach no credential of theirs: answers never allow credentials, a page sends its key by itself.
"""

from collections.abc import Iterator
from typing import Any

from integrations.clusters.base import Cors

FILTER = "envoy.filters.http.cors"
_CORS = "type.googleapis.com/envoy.extensions.filters.http.cors.v3"

METHODS = ("GET", "HEAD", "POST")
REQUEST_HEADERS = ("authorization", "*")
"""The star covers all headers but the first."""
RESPONSE_HEADERS = (
    "fairlead-revision",
    "x-request-id",
    "inference-header-content-length",
    "retry-after",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
)
"""Headers of answers that pages may read besides those that browsers show anyway; the last two are Envoy Gateway's."""
_ANSWERED_BY_FILTER = "preflights"
"""A cluster that does not exist: the filter answers preflights, but only of routes that lead to a cluster."""

Json = dict[str, Any]


def cors_filter() -> Json:
    """Return the filter of the listener, which does nothing for services without origins."""
    return {"name": FILTER, "typed_config": {"@type": f"{_CORS}.Cors"}}


def of_service(cors: Cors | None) -> Json:
    """Return the configuration of the filter for the routes of a service; empty where no other origin may call it."""
    if cors is None:
        return {}
    policy = {
        "@type": f"{_CORS}.CorsPolicy",
        "allow_origin_string_match": [{"exact": origin} for origin in cors.origins],
        "allow_methods": ", ".join(METHODS),
        "allow_headers": ", ".join(REQUEST_HEADERS),
        "expose_headers": ", ".join(RESPONSE_HEADERS),
        "max_age": str(cors.max_age_s),
        "forward_not_matching_preflights": False,
    }
    return {FILTER: policy}


def preflights(cors: Cors | None) -> Iterator[Json]:
    """Yield the route of a service's preflights, which is before its others."""
    if cors is None:
        return
    present = [{"name": name, "present_match": True} for name in ("origin", "access-control-request-method")]
    method = {"name": ":method", "string_match": {"exact": "OPTIONS"}}
    clusters = {"clusters": [{"name": _ANSWERED_BY_FILTER, "weight": 1}]}
    yield {"match": {"prefix": "/", "headers": [method, *present]}, "route": {"weighted_clusters": clusters}}
