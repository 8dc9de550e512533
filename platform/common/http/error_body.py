"""JSON of an error in the API's format (`common.http.api_errors`); imports no DRF, so middleware may import it."""

from collections.abc import Sequence

from common.http import request_id


def error_body(
    code: str, message: str, field: str | None = None, details: Sequence[str] = ()
) -> dict[str, dict[str, object]]:
    """Return the JSON of an error, with the current request's id."""
    body: dict[str, object] = {
        "code": code,
        "message": message,
        "field": field,
        "request_id": request_id.current() or None,
    }
    return {"error": {**body, "details": list(details)} if details else body}
