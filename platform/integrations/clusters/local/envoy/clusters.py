"""Envoy clusters and endpoints of revisions (CDS and EDS). Pure.

A cluster's definition never depends on changing values: Envoy replaces an edited cluster and loses its counters and
connections. Only the endpoints change, separate for each cluster, and the weights, which are in the routes.
"""

from typing import Any

from integrations.clusters.local.envoy import wake
from integrations.clusters.local.envoy.names import ClusterUse, cluster_name
from integrations.clusters.local.envoy.values import Endpoint, Place, RevisionEndpoints

_CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
_ASSIGNMENT = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
_HTTP_OPTIONS = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_NO_LIMIT = 1_000_000
# A shadow that hangs holds so many copies (and as many waiting for a connection); further ones fail at once.
MIRROR_LIMIT = 100
# Window of one call, each way, while its replica or client does not read; Envoy's own default is 16 MiB.
STREAM_WINDOW_BYTES = 65_536
CONNECTION_BUFFER_BYTES = 256 * 1024
# Below the runtime's own, so that it is Envoy who closes an idle connection and no request meets a closing one.
UPSTREAM_IDLE_TIMEOUT_S = 60


def cluster(revision: RevisionEndpoints, use: ClusterUse) -> dict[str, Any]:
    """Return one of a revision's clusters, whose endpoints Envoy requests next."""
    protocol: dict[str, Any] = {"http_protocol_options": {}}
    if use.is_grpc:
        protocol = {"http2_protocol_options": {"initial_stream_window_size": STREAM_WINDOW_BYTES}}
    return {
        "@type": _CLUSTER,
        **(wake.of_cluster(revision.why_failed) if revision.why_failed else {}),
        "name": cluster_name(revision.namespace, revision.revision, use, revision.slept_at),
        "type": "EDS",
        "eds_cluster_config": {
            "eds_config": {"resource_api_version": "V3", "ads": {}, "initial_fetch_timeout": "5s"},
        },
        "connect_timeout": "1s",
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "lb_policy": "MAGLEV" if revision.pooled else "LEAST_REQUEST",
        # Envoy would send to unhealthy endpoints when most are; here unhealthy means draining.
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "circuit_breakers": {"thresholds": [_limits(MIRROR_LIMIT if use.is_mirror else _NO_LIMIT)]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": _HTTP_OPTIONS,
                "common_http_protocol_options": {"idle_timeout": f"{UPSTREAM_IDLE_TIMEOUT_S}s"},
                "explicit_http_config": protocol,
            }
        },
    }


def endpoints(revision: RevisionEndpoints, use: ClusterUse) -> dict[str, Any]:
    """Return the endpoints of one of a revision's clusters."""
    return {
        "@type": _ASSIGNMENT,
        "cluster_name": cluster_name(revision.namespace, revision.revision, use, revision.slept_at),
        "endpoints": [{"lb_endpoints": [_endpoint(endpoint, use) for endpoint in revision.endpoints]}],
    }


def place_of(endpoint: Endpoint, use: ClusterUse) -> Place:
    """Return the address that a cluster of this use connects to."""
    return endpoint.grpc if use.is_grpc else endpoint.http


def _limits(most: int) -> dict[str, int]:
    return {
        "max_connections": most,
        "max_pending_requests": most,
        "max_requests": most,
        "max_retries": most,
    }


def _endpoint(endpoint: Endpoint, use: ClusterUse) -> dict[str, Any]:
    place = place_of(endpoint, use)
    socket = {"address": endpoint.host, "port_value": place}
    address = {"pipe": {"path": place}} if isinstance(place, str) else {"socket_address": socket}
    # By its address a replica would have another place in the table for gRPC.
    metadata = {"metadata": {"filter_metadata": {"envoy.lb": {"hash_key": endpoint.name}}}} if endpoint.name else {}
    return {
        "endpoint": {"address": address},
        "health_status": "DRAINING" if endpoint.draining else "HEALTHY",
        **metadata,
    }
