"""Shadow traffic: the path of a request's copy to a shadow. Pure.

Envoy copies a share of the requests of a route (`request_mirror_policies`) and drops the answers. By itself it would
set no timeout for a copy and count no gRPC status of it. So a copy takes a detour: from the route it goes to the
cluster `shadows`, whose one endpoint is a listener inside this Envoy, which nothing else can reach; that listener sets
a timeout and counts it on the shadow's own clusters just as the gateway's listener counts what clients see. The header
`fairlead-shadow` names that cluster on the way and is removed.
"""

from dataclasses import replace
from typing import Any

from integrations.clusters.local.envoy import pools
from integrations.clusters.local.envoy.access import CALLER_LIMIT_HEADER
from integrations.clusters.local.envoy.filters import MANAGER, http_filters
from integrations.clusters.local.envoy.names import ClusterUse, cluster_name
from integrations.clusters.local.envoy.scopes import SERVICE_METADATA
from integrations.clusters.local.envoy.values import Backend, ServiceRoute

SHADOWS = "shadows"
SHADOW_HEADER = "fairlead-shadow"
COPY_TIMEOUT_S = 30
_BOOTSTRAP = "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener"
_HTTP_OPTIONS = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
# The limits that protect clients are at each shadow's own clusters, so that no shadow uses another's share.
_NO_LIMIT = 1_000_000

Json = dict[str, Any]


def mirror_policy(service: ServiceRoute, backend: Backend, use: ClusterUse) -> Json:
    """Return the part of a route that sends copies to one of a revision's clusters, by its share.

    A pool's replica gets the shadow's version named in place of that of the revision which answers the client.
    """
    header = {"key": SHADOW_HEADER, "value": cluster_name(service.namespace, backend.revision, use, backend.slept_at)}
    named = pools.names(service, replace(backend, copies=())) if backend.pooled else []
    return {
        "cluster": SHADOWS,
        "runtime_fraction": {"default_value": {"numerator": backend.mirror_percent, "denominator": "HUNDRED"}},
        "disable_shadow_host_suffix_append": True,
        "request_headers_mutations": [
            {"append": {"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}},
            *({"append": each} for each in named),
            {"remove": CALLER_LIMIT_HEADER},  # of the replicas that answer; a shadow gets each copy
        ],
    }


def bootstrap_extension() -> Json:
    """Return the bootstrap extension for internal listeners."""
    return {"name": "envoy.bootstrap.internal_listener", "typed_config": {"@type": _BOOTSTRAP}}


def cluster() -> Json:
    """Return the cluster to which routes send every copy."""
    address = {"envoy_internal_address": {"server_listener_name": SHADOWS}}
    return {
        "name": SHADOWS,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": SHADOWS,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": _NO_LIMIT,
                    "max_pending_requests": _NO_LIMIT,
                    "max_requests": _NO_LIMIT,
                    "max_retries": _NO_LIMIT,
                }
            ]
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": _HTTP_OPTIONS,
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
    }


def listener() -> Json:
    """Return the internal listener that sends copies to the cluster their header names, and counts them there."""
    return {
        "name": SHADOWS,
        "internal_listener": {},
        "filter_chains": [
            {
                "filters": [
                    {"name": "envoy.filters.network.http_connection_manager", "typed_config": _manager()},
                ]
            }
        ],
    }


def _manager() -> Json:
    return {
        "@type": MANAGER,
        "stat_prefix": SHADOWS,
        "codec_type": "HTTP2",
        "route_config": {
            "name": SHADOWS,
            "virtual_hosts": [
                {
                    "name": SHADOWS,
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            "route": {
                                "cluster_header": SHADOW_HEADER,
                                "timeout": f"{COPY_TIMEOUT_S}s",
                                "hash_policy": [{"header": {"header_name": SERVICE_METADATA}}],  # in a pool
                            },
                            "request_headers_to_remove": [SHADOW_HEADER],
                        }
                    ],
                }
            ],
        },
        "http_filters": http_filters(),
        # The copy is what the gateway's listener made of the request; nothing is added to it here.
        "generate_request_id": False,
        "preserve_external_request_id": True,
        "skip_xff_append": True,
        "stream_idle_timeout": f"{COPY_TIMEOUT_S}s",
    }
