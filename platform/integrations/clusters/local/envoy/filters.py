"""HTTP filters of Envoy, the same at the gateway's listener and at the internal one for copies. Pure."""

from typing import Any

_TYPES = "type.googleapis.com/envoy.extensions.filters"
MANAGER = f"{_TYPES}.network.http_connection_manager.v3.HttpConnectionManager"
_GRPC_STATS = f"{_TYPES}.http.grpc_stats.v3.FilterConfig"
_ROUTER = f"{_TYPES}.http.router.v3.Router"

Json = dict[str, Any]


def http_filters() -> list[Json]:
    """Return the filters of every request: the gRPC status counter, and the router."""
    return [
        {
            "name": "envoy.filters.http.grpc_stats",
            "typed_config": {
                "@type": _GRPC_STATS,
                # By name: with "all methods" a stranger could make Envoy keep counters for any text.
                "individual_method_stats_allowlist": {
                    "services": [{"name": "inference.GRPCInferenceService", "method_names": ["ModelInfer"]}]
                },
            },
        },
        {
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": _ROUTER, "suppress_envoy_headers": True},
        },
    ]
