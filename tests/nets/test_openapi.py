"""The OpenAPI document stays: operations, parameters, answers, schemas. Descriptions may change."""

import json
from collections.abc import Iterator
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from tests.nets._support.recording import check


def without_prose(part: Any) -> Any:
    """Return a part of the document without what it says to people; a property called `description` stays."""
    if isinstance(part, dict):
        return {
            name: without_prose(value)
            for name, value in part.items()
            if not (name in ("description", "summary") and isinstance(value, str))
        }
    return [without_prose(each) for each in part] if isinstance(part, list) else part


def compact(part: Any) -> str:
    return json.dumps(without_prose(part), sort_keys=True, default=str)


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each parameter, body and answer of an operation, and for each property of a schema."""
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            rest = dict(operation)
            yield f"{method.upper()} {path} {rest.pop('operationId')}"
            yield from (f"  parameter {compact(each)}" for each in rest.pop("parameters", []))
            yield from (f"  answer {status} {compact(each)}" for status, each in sorted(rest.pop("responses").items()))
            yield f"  {compact(rest)}"
    for kind, components in document["components"].items():
        for name, component in sorted(components.items()):
            rest = dict(component)
            properties = rest.pop("properties", {})
            yield f"{kind} {name} {compact(rest)}"
            yield from (f"  {field}: {compact(each)}" for field, each in properties.items())


def test_the_document_is_as_it_was() -> None:
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    check("openapi.txt", "the OpenAPI document", lines(document))
