"""Scoped routes (SRDS): the mapping of requests to services, and the scope key of a request. Pure.

    fairlead-service: default/digits        -> /serving/default/digits
    /serving/default/digits/v2/...          -> /serving/default/digits/v2/...
    digits.default.example.org              -> /host/default/digits

Envoy finds a scope by three parts of one header in constant time. So each of the three ways to name a service is
written into the header `fairlead-service`, which goes no further than the gateway: metadata gets the prefix that a path
has already, and the few lines of Lua run only for requests that have neither.
"""

from collections.abc import Iterable
from typing import Any

SERVICE_METADATA = "fairlead-service"
BY_HOST = "fairlead.by_host"
FOUND_BY = ("serving", "host")
"""The first part of a scope's key: a path or metadata, or the host."""

_SCOPED_ROUTES = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
_EXTENSIONS = "type.googleapis.com/envoy.extensions"
_MUTATION = f"{_EXTENSIONS}.http.early_header_mutation.header_mutation.v3.HeaderMutation"
_WITH_MATCHER = f"{_EXTENSIONS}.common.matching.v3.ExtensionWithMatcher"
_SKIP = f"{_EXTENSIONS}.filters.common.matcher.action.v3.SkipFilter"
_LUA = f"{_EXTENSIONS}.filters.http.lua.v3.Lua"
_HEADER = "type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput"
_NAME_BY_HOST = f"""
function envoy_on_request(handle)
  local headers = handle:headers()
  local service, namespace = string.match(string.lower(headers:get(":authority") or ""), "^([^.]+)%.([^.:]+)")
  if service then
    headers:replace("{SERVICE_METADATA}", "/host/" .. namespace .. "/" .. service)
  end
end
"""

Json = dict[str, Any]


def scope_name(found_by: str, key: str) -> str:
    """Return the name of a service's scope; `key` is the service's name in requests."""
    return f"{found_by}/{key}"


def scope(found_by: str, key: str, *, routes: str = "", on_demand: bool = False) -> Json:
    """Return the scope that maps requests found this way to the service's routes.

    Args:
        routes: their name; empty for that of the service.
        on_demand: Envoy requests the routes once a request needs them (`wake.routes_filter`).
    """
    return {
        "@type": _SCOPED_ROUTES,
        "name": scope_name(found_by, key),
        "route_configuration_name": routes or key,
        "key": {"fragments": [{"string_key": part} for part in (found_by, *key.split("/"))]},
        **({"on_demand": True} if on_demand else {}),
    }


def scope_key() -> Json:
    """Return the scope key builder for requests."""
    return {
        "fragments": [
            {"header_value_extractor": {"name": SERVICE_METADATA, "element_separator": "/", "index": index}}
            for index in (1, 2, 3)
        ]
    }


def name_by_metadata_or_path(removed: Iterable[str]) -> Json:
    """Return the filter that writes the header before Envoy looks for a scope, and removes those that are our own."""
    return {
        "name": "envoy.http.early_header_mutation.header_mutation",
        "typed_config": {
            "@type": _MUTATION,
            "mutations": [
                _written(f"/serving/%REQ({SERVICE_METADATA})%", "OVERWRITE_IF_EXISTS"),
                _written("%REQ(:path)%", "ADD_IF_ABSENT"),
                *({"remove": header} for header in removed),
            ],
        },
    }


def name_by_host() -> Json:
    """Return the filter that writes the header by the host, where neither metadata nor the path name a service."""
    named = {"action": {"name": "skip", "typed_config": {"@type": _SKIP}}}
    return {
        "name": BY_HOST,
        "typed_config": {
            "@type": _WITH_MATCHER,
            "extension_config": {
                "name": "envoy.filters.http.lua",
                "typed_config": {"@type": _LUA, "default_source_code": {"inline_string": _NAME_BY_HOST}},
            },
            "xds_matcher": {
                "matcher_tree": {
                    "input": {"name": "header", "typed_config": {"@type": _HEADER, "header_name": SERVICE_METADATA}},
                    "prefix_match_map": {"map": {"/serving/": named}},
                }
            },
        },
    }


def _written(value: str, action: str) -> Json:
    return {"append": {"header": {"key": SERVICE_METADATA, "value": value}, "append_action": action}}
