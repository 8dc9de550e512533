"""Labels of answers at the gateway, beside the model's address: the agent takes them. Pure.

The service's policies hold for them as for all its routes. No replica gets them, so a service that sleeps goes on
sleeping. The path that the agent gets is the service's key and a suffix, so that no name of a service makes its line in
the access log that of an inference call.
"""

from typing import Any

from integrations.clusters.local.envoy.values import ServiceRoute

CLUSTER = "feedback"
SUFFIX = "/feedback"
AT_ONCE = 64
"""Most requests that the agent gets at once; further ones wait, as many as that, and then get 503."""
_TIMEOUT = "15s"

Json = dict[str, Any]


def cluster(socket: str) -> Json:
    """Return the cluster of the agent's intake, which listens on a Unix socket."""
    endpoint = {"endpoint": {"address": {"pipe": {"path": socket}}}}
    limits = {"max_connections": AT_ONCE, "max_pending_requests": AT_ONCE, "max_requests": 2 * AT_ONCE}
    return {
        "name": CLUSTER,
        "type": "STATIC",
        "connect_timeout": "1s",
        "circuit_breakers": {"thresholds": [limits]},
        "load_assignment": {"cluster_name": CLUSTER, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def path_of(service: ServiceRoute) -> str:
    """Return the path that takes the labels of a service, without its prefix."""
    return f"/v2/models/{service.model or service.service}{SUFFIX}"


def route(service: ServiceRoute, prefix: str) -> Json:
    """Return the route of a service's labels below `prefix`."""
    posted = [{"name": ":method", "string_match": {"exact": "POST"}}]
    to = {"weighted_clusters": {"clusters": [{"name": CLUSTER, "weight": 100}]}}
    return {
        "match": {"path": prefix + path_of(service), "headers": posted},
        "route": {**to, "timeout": _TIMEOUT, "prefix_rewrite": f"/{service.key}{SUFFIX}"},
    }
