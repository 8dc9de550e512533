"""OpenAPI hook: adds the error format to every operation (`common.http.api_errors`)."""

from typing import Any

_ERROR = {
    "type": "object",
    "description": "An error response. `message` is one sentence; `field` names the invalid field, null if none.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field", "request_id"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": "string", "nullable": True},
                "request_id": {"type": "string", "nullable": True},
                "details": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Individual errors, one sentence each; present only when there are several.",
                },
            },
        }
    },
}


def document_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the error format to every operation; a postprocessing hook of drf-spectacular."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = _ERROR
    answer = {
        "description": "Error, with any other status.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for item in result["paths"].values():
        for operation in item.values():
            operation["responses"].setdefault("default", answer)
    return result
