"""HTTPRoutes and GRPCRoutes to Envoy's route table, for tests only and as far as the product's routes go. Pure.

Paths by value or prefix, methods, headers by value or by expression; weights, mirrors, one path or prefix in the place
of another, the removal of headers.
The order is the Gateway API's: whole paths, then the longest prefix, a method, the number of headers, then the older
route, then the route's name, then the rule's place.
Anything else is a KeyError or a ValueError, so that no test passes on a route that is only half understood.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from integrations.clusters.local.envoy.names import ClusterUse, cluster_name
from integrations.clusters.local.envoy.routes import RETRY

Json = dict[str, Any]
TABLE = "all"
VERSION_PATH = "/version-of-the-routes"
"""Answers with the version of the table that it is found in, as a header `version`."""
_ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
_GRPC_PORT = 8001


def route_table(routes: Iterable[Json], *, version: str, retries: bool = False) -> Json:
    """Return the table of all routes, of the name TABLE; a route without hostnames is for every host.

    Args:
        retries: try again elsewhere what no model has seen, as the operator of a Gateway may ask of it.
    """
    told: Json = {
        "match": {"path": VERSION_PATH, "headers": []},
        "direct_response": {"status": 200},
        "response_headers_to_add": [{"header": {"key": "version", "value": version}}],
    }
    hosts: dict[str, list[Json]] = {"*": [told]}
    for route in sorted(routes, key=_age):
        for host in route["spec"].get("hostnames", ["*"]):
            hosts.setdefault(host, []).extend(_rules(route))
    tables = [
        {"name": host, "domains": [host], "routes": sorted(rules, key=_order)} for host, rules in sorted(hosts.items())
    ]
    if retries:
        tables = [{**table, "retry_policy": RETRY} for table in tables]
    return {"@type": _ROUTES, "name": TABLE, "virtual_hosts": tables}


def backends(route: Json) -> set[tuple[str, str]]:
    """Return namespace and name of every Service that a route leads to."""
    namespace = route["metadata"]["namespace"]
    refs = [ref for rule in route["spec"]["rules"] for ref in rule.get("backendRefs", ())]
    filters = [each for rule in route["spec"]["rules"] for each in rule.get("filters", ())]
    refs += [each["requestMirror"]["backendRef"] for each in filters if each["type"] == "RequestMirror"]
    return {(namespace, ref["name"]) for ref in refs}


def _age(route: Json) -> tuple[str, str]:
    metadata = route["metadata"]
    return metadata["creationTimestamp"], f"{metadata['namespace']}/{metadata['name']}"


def _rules(route: Json) -> Iterator[Json]:
    namespace = route["metadata"]["namespace"]
    for rule in route["spec"]["rules"]:
        action = _action(namespace, rule)
        for match in rule["matches"]:
            yield {"match": _match(match, is_grpc=route["kind"] == "GRPCRoute"), **action}


def _order(route: Json) -> tuple[bool, int, bool, int]:
    match = route["match"]
    is_prefix = "path_separated_prefix" in match
    names = [each["name"] for each in match["headers"]]
    length = len(match["path_separated_prefix"]) if is_prefix else 0
    return is_prefix, -length, ":method" not in names, -len(names)


def _match(match: Json, *, is_grpc: bool) -> Json:
    headers = [_header(each) for each in match.get("headers", ())]
    if is_grpc:
        method = match["method"]
        path = {"type": method["type"], "value": f"/{method['service']}/{method['method']}"}
    else:
        path = match["path"]
        if "method" in match:
            headers.append({"name": ":method", "string_match": {"exact": match["method"]}})
    how = {"Exact": "path", "PathPrefix": "path_separated_prefix"}
    return {how[path["type"]]: path["value"], "headers": headers}


def _header(header: Json) -> Json:
    value = header["value"]
    how = {"Exact": {"exact": value}, "RegularExpression": {"safe_regex": {"regex": value}}}
    return {"name": header["name"], "string_match": how[header["type"]]}


def _action(namespace: str, rule: Json) -> Json:
    weighted = [ref for ref in rule.get("backendRefs", ()) if ref["weight"]]
    if not weighted:
        return {"direct_response": {"status": 500}}
    clusters = [_weighted(namespace, ref) for ref in weighted]
    route: Json = {
        "weighted_clusters": {"clusters": clusters},
        "timeout": rule.get("timeouts", {}).get("request", "0s"),
    }
    removed: list[str] = []
    for each in rule.get("filters", ()):
        if each["type"] == "URLRewrite":
            [route["prefix_rewrite"]] = [value for name, value in each["urlRewrite"]["path"].items() if name != "type"]
        elif each["type"] == "RequestMirror":
            route.setdefault("request_mirror_policies", []).append(_mirror(namespace, each["requestMirror"]))
        elif each["type"] == "RequestHeaderModifier" and each["requestHeaderModifier"].keys() == {"remove"}:
            removed = each["requestHeaderModifier"]["remove"]
        else:
            raise ValueError(f"a filter of the type {each['type']} is not understood here")
    return {"route": route, "request_headers_to_remove": removed}


def _weighted(namespace: str, ref: Json) -> Json:
    if "filters" in ref:
        raise ValueError("filters of a backend are not understood here")
    return {"name": _cluster(namespace, ref), "weight": ref["weight"]}


def _mirror(namespace: str, mirror: Json) -> Json:
    share = {"numerator": mirror["percent"], "denominator": "HUNDRED"}
    return {"cluster": _cluster(namespace, mirror["backendRef"]), "runtime_fraction": {"default_value": share}}


def _cluster(namespace: str, ref: Json) -> str:
    use = ClusterUse.GRPC if ref["port"] == _GRPC_PORT else ClusterUse.INFER
    return cluster_name(namespace, ref["name"], use)
