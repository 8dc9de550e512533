"""API documentation page of the data plane, and the OpenAPI document behind it."""

import json
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from serving_runtime import __version__
from serving_runtime.common.datatypes import element_count
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.routes import EVENTS, Call, Route, of_versions
from serving_runtime.protocol.http.api.schemas import COMPONENTS, components_of
from serving_runtime.protocol.http.wire.message import Response, json_response

_TITLE = "Fairlead serving runtime"

_HEADERS = (
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nX-Content-Type-Options: nosniff\r\n"
)

_FEW = 16
_ZEROS: dict[str, Any] = {"O": "text", "b": False, "f": 0.5}

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, monospace; font-size: .875rem; }
pre { padding: .75rem; border: 1px solid GrayText; border-radius: .25rem; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; }
th, td:first-child { white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid GrayText; }
"""


def routes(engine: Engine, all_routes: Callable[[], Sequence[Route]]) -> list[Route]:
    """Return the routes to these views; they document `all_routes`."""
    views = _Views(engine, all_routes)
    group, json_path = "metadata", "/docs/dataplane.json"
    return [
        Route("GET", "/v2/docs", group, "Get the API documentation page", views.page),
        Route("GET", f"/v2{json_path}", group, "Get the OpenAPI document", views.document, gives="Object"),
        *of_versions("GET", "/docs", group, "Get the API documentation page of a model", views.model_page),
        *of_versions(
            "GET", json_path, group, "Get the OpenAPI document of a model", views.model_document, gives="Object"
        ),
    ]


class _Views:
    def __init__(self, engine: Engine, all_routes: Callable[[], Sequence[Route]]) -> None:
        self._engine = engine
        self._all_routes = all_routes

    def document(self, _call: Call) -> Response:
        return json_response(self._document())

    def model_document(self, call: Call) -> Response:
        return json_response(self._model_document(call))

    def page(self, _call: Call) -> Response:
        names = sorted({servable.name for servable in self._engine.servables()})
        models = "".join([f"<li>{_link('/v2/models/' + quote(name, safe='') + '/docs', name)}" for name in names])
        about = f"The {_link('/v2/docs/dataplane.json', 'OpenAPI document')} of these paths, for tools."
        return _page(_TITLE, f"<p>{about}</p><h2>Models</h2><ul>{models}</ul>{_paths(self._document())}")

    def model_page(self, call: Call) -> Response:
        config = self._engine.servable(call.model, call.version).config
        document = self._model_document(call)
        path = f"/v2/models/{quote(call.model, safe='')}"
        path += f"/versions/{quote(call.version, safe='')}" if call.version else ""
        parts = [
            f"<p>{_link('/v2/docs', 'All paths')}, {_link(f'{path}/docs/dataplane.json', 'OpenAPI document')}</p>",
            _tensors("Inputs", config, config.inputs),
            _tensors("Outputs", config, config.outputs),
            f"<h2>A request</h2><pre>{escape(_example(config, path))}</pre>",
            _paths(document),
        ]
        return _page(document["info"]["title"], "".join(parts))

    def _document(self) -> dict[str, Any]:
        return openapi_document(self._all_routes(), title=_TITLE, version=__version__)

    def _model_document(self, call: Call) -> dict[str, Any]:
        config = self._engine.servable(call.model, call.version).config
        return model_document(self._all_routes(), config, call.version, version=__version__)


def _page(title: str, body: str) -> Response:
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(title)}</title>"
    style = f"<style>{_STYLE}</style>"
    page = f"<!doctype html><html lang=en><head>{head}{style}</head><body><h1>{escape(title)}</h1>{body}</body></html>"
    content = page.encode()
    return Response(200, _HEADERS, (content,), len(content))


def _link(path: str, text: str) -> str:
    return f'<a href="{escape(path)}">{escape(text)}</a>'


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under a heading; the second cell of a row is code."""
    head = "".join([f"<th>{escape(name)}</th>" for name in names])
    body = "".join(
        [
            f"<tr><td>{escape(first)}</td><td><code>{escape(second)}</code></td><td>{escape(third)}</td></tr>"
            for first, second, third in rows
        ]
    )
    return f"<h2>{escape(title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _paths(document: dict[str, Any]) -> str:
    rows = [
        (method.upper(), path, operation["summary"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    return _table("Paths", ("method", "path", "what"), rows)


def _tensors(title: str, config: ModelConfig, tensors: Sequence[ModelTensor]) -> str:
    rows = [(tensor.datatype.name, tensor.name, str(_shape(config, tensor))) for tensor in tensors]
    return _table(title, ("datatype", "name", "shape"), rows)


def _shape(config: ModelConfig, tensor: ModelTensor) -> list[int]:
    return [*([-1] if config.max_batch_size else []), *tensor.dims]


def _example(config: ModelConfig, path: str) -> str:
    """Return an example request by curl: variable dimensions are 1, values are zeros where they are few."""
    inputs = []
    for tensor in config.inputs:
        shape = tuple(abs(dim) for dim in _shape(config, tensor))
        count, zero = element_count(shape), _ZEROS.get(tensor.datatype.dtype.kind, 0)
        data = [zero] * count if count <= _FEW else ["..."]
        inputs.append({"name": tensor.name, "datatype": tensor.datatype.name, "shape": shape, "data": data})
    body = json.dumps({"inputs": inputs}).replace("'", "'\\''")
    return f"curl http://HOST:8000{path}/infer -d '{body}'"


_NAMES = re.compile(r"\{(\w+)\}")

_BINARY = "application/octet-stream"


def openapi_document(routes: Sequence[Route], *, title: str, version: str) -> dict[str, Any]:
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
