"""OpenAPI documents: of the HTTP port, generated from its routes, and of one model, with its tensors."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from serving_runtime.config.model import ModelConfig
from serving_runtime.protocol.http.api.routes import EVENTS, Route
from serving_runtime.protocol.http.api.schemas import COMPONENTS, components_of

_NAMES = re.compile(r"\{(\w+)\}")

_BINARY = "application/octet-stream"


def document(routes: Sequence[Route], *, title: str, version: str) -> dict[str, Any]:
    """Return the document of all routes."""
    return _document(routes, {}, COMPONENTS, title=title, version=version)


def model_document(routes: Sequence[Route], config: ModelConfig, model_version: str, *, version: str) -> dict[str, Any]:
    """Return the document of one model, or of one version of it: its paths, its tensors."""
    known = {"model": config.name, **({"version": model_version} if model_version else {})}
    own = [route for route in routes if _NAMES.findall(route.path) == list(known)]
    title = f"{config.name}, version {model_version}" if model_version else config.name
    return _document(own, known, components_of(config), title=title, version=version)


def _document(
    routes: Sequence[Route], known: dict[str, str], components: dict[str, Any], *, title: str, version: str
) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = _NAMES.sub(lambda found: quote(known[found[1]], safe="") if found[1] in known else found[0], route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: Route, known: dict[str, str]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "tags": [route.group],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _NAMES.findall(route.path)
            if name not in known
        ],
        "responses": {
            "200": {"description": "Success", **({"content": _content(route.gives)} if route.gives else {})},
            "default": {"description": "Error", "content": _content("Error")},
        },
    }
    if route.takes:
        content = _content(route.takes)
        if route.takes == "InferRequest":
            content[_BINARY] = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": route.takes not in _OPTIONAL, "content": content}
    return operation


_OPTIONAL = frozenset({"IndexRequest", "LoadRequest", "UnloadRequest"})


def _content(name: str) -> dict[str, Any]:
    if name == EVENTS:
        event = {"type": "object", "required": ["data"], "properties": {"data": {"type": "string"}}}
        return {"text/event-stream": {"schema": event}}
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    if name == "InferResponse":
        content[_BINARY] = {"schema": {"type": "string", "format": "binary"}}
    return content
