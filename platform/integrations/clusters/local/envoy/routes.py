"""Envoy routes of a service and its shares (RDS). Pure.

`scopes.py` maps requests to the service. Only infer and read-only calls (health, metadata, configuration, statistics)
are allowed, each by its exact path, with the prefix `/serving/default/digits` or, by host, without; a path with
`/versions/N/` goes to the revisions that serve N. Calls that name no version follow `traffic_policy.py`; shadows get
copies of infer calls among them, gRPC streams separately. Other requests are refused here, with a sentence that the
listener puts into JSON. A preview is one more service, `digits-preview`, whose model is `digits`. Explain requests are
let through where something explains; they are no infer calls, so that shadows get no copies and no gate counts them.
Labels of answers go to the agent (`feedback.py`).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from integrations.clusters.local.envoy import access, cors, feedback, limits, pools, wake
from integrations.clusters.local.envoy.mirror import mirror_policy
from integrations.clusters.local.envoy.names import ClusterUse, cluster_name
from integrations.clusters.local.envoy.scopes import SERVICE_METADATA
from integrations.clusters.local.envoy.traffic_policy import Way, hash_policy, set_cookie, ways
from integrations.clusters.local.envoy.values import Backend, ServiceRoute

REVISION_HEADER = "fairlead-revision"
_ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
_PREVIOUS_HOSTS = "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
_INFER_CALLS = ("infer", "generate", "generate_stream")
_GRPC_INFER = "/inference.GRPCInferenceService/ModelInfer"
_GRPC_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
_GRPC_META = (
    r"/inference\.GRPCInferenceService/(Server(Live|Ready|Metadata)|Model(Ready|Metadata|Config|Statistics))",
    r"/grpc\.health\.v1\.Health/(Check|Watch)",
)
# Only requests that certainly never reached a model are retried, on another replica if any.
RETRY = {
    "retry_on": "connect-failure,refused-stream",
    "num_retries": 3,
    "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.050s"},
    "retry_host_predicate": [
        {"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": {"@type": _PREVIOUS_HOSTS}}
    ],
    "host_selection_retry_max_attempts": 3,
}
RETRY_IN_POOLS = {**RETRY, "retry_on": f"{RETRY['retry_on']},reset"}
"""A replica that ends takes the requests of many services with it: they go on at another, which loads their models."""
_ALLOWED = "the gateway lets through infer calls and what only reads: health, metadata, configuration and statistics"

_ASLEEP_META = (
    r"/inference\.GRPCInferenceService/(Server(Live|Ready)|Model(Ready|Statistics))",
    r"/grpc\.health\.v1\.Health/(Check|Watch)",
)
Json = dict[str, Any]
_READING: Json = {"safe_regex": {"regex": "GET|HEAD"}}
_JSON: Json = {
    "header": {"key": "content-type", "value": "application/json"},
    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
}


def routes(service: ServiceRoute, name: str = "") -> Json:
    """Return the routes of one service; `name` is theirs where it is not that of the service."""
    return {
        "@type": _ROUTES,
        "name": name or service.key,
        "virtual_hosts": [
            {
                "name": service.key,
                "domains": ["*"],
                "retry_policy": RETRY_IN_POOLS if any(each.pooled for each in service.backends) else RETRY,
                "typed_per_filter_config": {
                    **access.of_service(service.access, service.called),
                    **cors.of_service(service.cors),
                    **limits.of_service(service.limits),
                },
                "routes": [{"name": service.key, **route} for route in _routes(service)],
            }
        ],
        "request_headers_to_remove": [
            *([] if any(backend.pooled for backend in service.backends) else [SERVICE_METADATA]),
            access.SCOPE_HEADER,
        ],
        "max_direct_response_body_size_bytes": 65536,
    }


def _routes(service: ServiceRoute) -> Iterator[Json]:
    """Yield them in matching order; the access log says the service by their name."""
    yield from cors.preflights(service.cors)
    yield from _http_routes(service, f"/serving/{service.key}")
    yield from _grpc_routes(service)
    yield from _http_routes(service, "")


def with_previews(services: Iterable[ServiceRoute]) -> list[ServiceRoute]:
    """Return the services and, as separate services, their previews; a real service keeps its name."""
    named = {service.key: service for service in services}
    previews = (service.preview_route() for service in list(named.values()) if service.preview)
    return [*named.values(), *(preview for preview in previews if preview.key not in named)]


def _feedback_routes(service: ServiceRoute, prefix: str) -> Iterator[Json]:
    if service.takes_feedback:
        yield feedback.route(service, prefix)
        yield _posted_only(prefix + feedback.path_of(service))


def _http_routes(service: ServiceRoute, prefix: str) -> Iterator[Json]:
    """Yield the HTTP routes below `prefix`, which is removed, and last a refusal of all else below it."""
    name = service.model or service.service
    model, v1 = f"/v2/models/{name}", f"/v1/models/{name}"
    infer, meta = ClusterUse.INFER, ClusterUse.META
    for path in _infer_paths(model, v1):
        for way in ways(service):
            yield _http(service, way, prefix, path, infer, mirror=ClusterUse.MIRROR_INFER)
        yield _posted_only(prefix + path)
    for path in (f"{v1}:explain", f"{model}/explain") if service.explains else ():
        for way in ways(service):
            yield _http(service, way, prefix, path, meta, method={"exact": "POST"})
        yield _posted_only(prefix + path)
    for version, backends in _by_version(service):
        for path in _infer_paths(f"{model}/versions/{version}", f"{v1}/versions/{version}"):
            yield _http(service, Way((), backends), prefix, path, infer)
            yield _posted_only(prefix + path)
    yield from _feedback_routes(service, prefix)
    facts = (f"{model}/config", f"{model}/stats", "/v2/models/stats")
    yield from _probes(service, prefix, model, v1)
    for path in (model, f"{model}/ready", "/v2/health/live", "/v2/health/ready", "/v2", v1, *facts):
        for way in ways(service):
            yield _http(service, way, prefix, path, meta)
    for version, backends in _by_version(service):
        of_version = f"{model}/versions/{version}"
        calls = ("", "/ready", "/config", "/stats")
        for path in (*(f"{of_version}{call}" for call in calls), f"{v1}/versions/{version}"):
            yield _http(service, Way((), backends), prefix, path, meta)
    of_versions = {"prefix": f"{prefix}{model}/versions/"}
    if versions := ", ".join(version for version, _ in _by_version(service)):
        sentence = f"service {service.key} has no such version or call; it serves the versions {versions}"
        yield _refusal(of_versions, 404, sentence)
    else:
        yield _refusal(of_versions, 503, _unserved(service))
    below = {"path_separated_prefix": prefix} if prefix else {"prefix": "/"}
    yield _refusal(
        below, 404, f"service {service.key} has no such path; its model is at {prefix}{model}, and {_ALLOWED}"
    )


def _probes(service: ServiceRoute, prefix: str, model: str, v1: str) -> Iterator[Json]:
    """Yield, for a service that is asleep, the answers to what asks for its health: it takes requests, and sleeps on.

    Else the probes of a load balancer would keep it awake for ever. Statistics wake nothing either.
    """
    if not service.is_asleep:
        return
    name = service.model or service.service
    answers = {
        "/v2/health/live": {"live": True},
        "/v2/health/ready": {"ready": True},
        f"{model}/ready": {"name": name, "ready": True},
        v1: {"name": name, "ready": True},
    }
    for path, said in answers.items():
        body = {"inline_string": json.dumps(said)}
        yield {
            "match": {"path": prefix + path, "headers": [{"name": ":method", "string_match": _READING}]},
            "direct_response": {"status": 200, "body": body},
            "response_headers_to_add": [_JSON],
        }
    for path in (f"{model}/stats", "/v2/models/stats"):
        yield _refusal({"path": prefix + path}, 503, f"service {service.key} is asleep: it has no statistics now")


def _infer_paths(v2: str, v1: str) -> list[str]:
    return [*(f"{v2}/{call}" for call in _INFER_CALLS), f"{v1}:predict"]


def _posted_only(path: str) -> Json:
    return _refusal({"path": path}, 405, "this path takes POST only")


def _grpc_routes(service: ServiceRoute) -> Iterator[Json]:
    """Yield the gRPC routes, and last a refusal of every other method."""
    calls: list[Json] = [
        {"path": _GRPC_INFER},
        {"path": _GRPC_STREAM},
        *({"safe_regex": {"regex": regex}} for regex in _GRPC_META),
    ]
    for regex in _ASLEEP_META if service.is_asleep else ():
        asleep = f"service {service.key} is asleep: the next infer call wakes it"
        yield _refusal({"safe_regex": {"regex": regex}, "grpc": {}}, 503, asleep)
    for match in calls:
        mirror = ClusterUse.MIRROR_GRPC if match.get("path") == _GRPC_INFER else None
        for way in ways(service):
            asked = {**match, "grpc": {}, **({"headers": list(way.headers)} if way.headers else {})}
            action = _action(service, way, ClusterUse.GRPC, mirror=mirror)
            streamed = limits.of_stream(service.limits) if match.get("path") == _GRPC_STREAM else {}
            yield {"match": asked, **action, **streamed}
    yield _refusal({"prefix": "/", "grpc": {}}, 404, f"service {service.key} has no such method; {_ALLOWED}")


def _http(
    service: ServiceRoute,
    way: Way,
    prefix: str,
    path: str,
    use: ClusterUse,
    *,
    mirror: ClusterUse | None = None,
    method: Json | None = None,
) -> Json:
    if method is None:
        method = {"exact": "POST"} if use is ClusterUse.INFER else _READING
    headers = [{"name": ":method", "string_match": method}, *way.headers]
    match = {"path": prefix + path, "headers": headers}
    return {"match": match, **_action(service, way, use, below=prefix, rewrite=path if prefix else "", mirror=mirror)}


def _action(
    service: ServiceRoute,
    way: Way,
    use: ClusterUse,
    *,
    below: str = "",
    rewrite: str = "",
    mirror: ClusterUse | None = None,
) -> Json:
    """Return the action of a matched request: to the backends by share, or a refusal with the reason.

    Args:
        below: prefix of the service's paths, which its cookie is for.
        mirror: clusters through which shadows get copies; None for requests that are not copied.
    """
    weighted = [backend for backend in way.backends if backend.share_percent]
    if not weighted:
        return {"direct_response": {"status": 503, "body": {"inline_string": _unserved(service)}}}
    # Of services at rest there are thousands, and the expression of the other hash policy is a third of their memory.
    is_copied = way.affinity is None and (service.is_at_rest or pools.has_copies(weighted))
    weighted = pools.entries(service, weighted) if is_copied else [replace(each, copies=()) for each in weighted]
    clusters: Json = {"clusters": [_weighted(service, backend, use) for backend in weighted]}
    timeout_s = 0 if use.is_grpc else service.request_timeout_s
    route: Json = {"weighted_clusters": clusters, "timeout": f"{timeout_s}s"}
    if way.affinity is not None:
        clusters["use_hash_policy"] = True
        route["hash_policy"] = hash_policy(way.affinity)
    elif any(backend.pooled for backend in weighted):
        route["hash_policy"] = pools.BY_COPY if is_copied else pools.BY_SERVICE
    if rewrite:
        route["prefix_rewrite"] = rewrite
    if mirror is not None and (copies := [backend for backend in way.backends if backend.mirror_percent]):
        route["request_mirror_policies"] = [mirror_policy(service, backend, mirror) for backend in copies]
    if service.is_asleep:
        return {"route": route, **wake.of_route(service.key)}
    if way.affinity is not None and way.gives_cookie:
        return {"route": route, "response_headers_to_add": [set_cookie(way.affinity, path=below or "/")]}
    return {"route": route}


def _unserved(service: ServiceRoute) -> str:
    """Return why no revision serves."""
    return service.unserved or f"service {service.key} is starting: no replica takes requests yet"


def _weighted(service: ServiceRoute, backend: Backend, use: ClusterUse) -> Json:
    added = limits.of_replicas(service.limits, backend.replicas)
    added += pools.names(service, backend) if backend.pooled else []
    is_mixed = not backend.pooled and any(each.pooled for each in service.backends)
    return {
        "name": _cluster(service, backend, use),
        "weight": backend.share_percent,
        "response_headers_to_add": [
            {
                "header": {"key": REVISION_HEADER, "value": backend.revision},
                "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
            }
        ],
        **({"request_headers_to_add": added} if added else {}),
        **({"request_headers_to_remove": [SERVICE_METADATA]} if is_mixed else {}),
    }


def _cluster(service: ServiceRoute, backend: Backend, use: ClusterUse) -> str:
    if backend.pool:
        namespace, _, pool = backend.pool.partition("/")
        return cluster_name(namespace, pool, use)
    return cluster_name(service.namespace, backend.revision, use, backend.slept_at)


def _by_version(service: ServiceRoute) -> Iterator[tuple[str, list[Backend]]]:
    """Yield each version with the revisions that serve it; without a share they share equally."""
    for version in sorted({backend.model_version for backend in service.backends}, key=lambda text: (len(text), text)):
        serving = [backend for backend in service.backends if backend.model_version == version]
        if not any(backend.share_percent for backend in serving):
            serving = [replace(backend, share_percent=1) for backend in serving]
        yield version, serving


def _refusal(match: Json, status: int, sentence: str) -> Json:
    return {"match": match, "direct_response": {"status": status, "body": {"inline_string": sentence}}}
