"""Envoy bootstrap: its admin page, the listener, and the discovery service for all else. Pure."""

from typing import Any

from integrations.clusters.local.envoy import feedback, mirror
from integrations.clusters.local.envoy.listener import listener, own_listener
from integrations.clusters.local.envoy.overload import MAX_HEAP_BYTES, overload_manager
from integrations.clusters.local.envoy.wake import HELD_S

AGENT = "agent"
_GRPC = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

_RECONNECT = {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}}
"""Envoy reconnects to a restarted agent within about a second."""

_READ = [
    *({"prefix": each} for each in ("http.", "server.", "overload.", "cluster_manager.", "listener_manager.")),
    *({"suffix": each} for each in (".upstream_rq_total", ".upstream_rq_active", "xx", ".update_rejected")),
    {"contains": ".ModelInfer."},
]
"""The statistics that are read. A cluster has a hundred others; a page iterates all existing ones, shown or not: 330 ms
with 1,000 services, in Envoy's one thread that also takes up changes."""

STARTED_AT_TAG = "fairlead_started_at"


def bootstrap(
    *,
    agent_socket: str,
    host: str,
    port: int,
    admin_socket: str,
    started_at: str,
    max_heap_bytes: int = MAX_HEAP_BYTES,
    transport: dict[str, Any] | None = None,
    own_socket: str = "",
    access_log: str = "",
    held_s: float = HELD_S,
    feedback_socket: str = "",
) -> dict[str, Any]:
    """Return the bootstrap for a gateway on `host`:`port`.

    Args:
        agent_socket: path of the Unix socket of the agent's discovery service (`agent.gateway.discovery`).
        admin_socket: path of the Unix socket of the admin page. It can end Envoy, so no port leads to it: code that
            posts to user-chosen addresses cannot reach it.
        started_at: Unix seconds; a label on every counter, by which a reader detects a restart of counters.
        max_heap_bytes: limit of Envoy's heap; `overload` acts before it is reached.
        transport: TLS of the port (`tls.over_tls`); None for plain HTTP.
        own_socket: path of a Unix socket where the control plane of this machine calls services without TLS; empty for
            none.
        access_log: path of the file with a line for each request; empty for none.
        held_s: how long requests wait for a service that is asleep.
        feedback_socket: path of the Unix socket where the agent takes labels (`agent.feedback_intake`); empty for none.
    """
    return {
        "node": {"id": "gateway", "cluster": "fairlead"},
        "admin": {"address": {"pipe": {"path": admin_socket, "mode": 0o600}}},
        "overload_manager": overload_manager(max_heap_bytes),
        "stats_flush_on_admin": True,  # by itself it would merge the histograms of all clusters each five seconds
        "stats_config": {
            "stats_tags": [{"tag_name": STARTED_AT_TAG, "fixed_value": started_at}],
            "stats_matcher": {"inclusion_list": {"patterns": _READ}},
        },
        "static_resources": {
            "listeners": [
                listener(host=host, port=port, transport=transport, log=access_log, held_s=held_s),
                *([own_listener(own_socket, log=access_log, held_s=held_s)] if own_socket else []),
                mirror.listener(),
            ],
            "clusters": [
                _agent(agent_socket),
                mirror.cluster(),
                *([feedback.cluster(feedback_socket)] if feedback_socket else []),
            ],
        },
        "bootstrap_extensions": [mirror.bootstrap_extension()],
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [{"envoy_grpc": {"cluster_name": AGENT, "retry_policy": _RECONNECT}}],
            },
            "cds_config": {"resource_api_version": "V3", "ads": {}},
        },
    }


def _agent(socket: str) -> dict[str, Any]:
    """Return the cluster of the agent."""
    options = {"@type": _GRPC, "explicit_http_config": {"http2_protocol_options": {}}}
    endpoint = {"endpoint": {"address": {"pipe": {"path": socket}}}}
    return {
        "name": AGENT,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": AGENT, "endpoints": [{"lb_endpoints": [endpoint]}]},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
    }
