"""Error format of the API, and DRF's exception handler that makes it.

{"error": {"code": "not_found", "message": "one sentence", "field": null, "request_id": "..."}}

and beside these `"details": ["one sentence", ...]` where the message is about several things.
"""

import re
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.core.signals import got_request_exception
from django.http import Http404, HttpRequest, UnreadablePostError
from django.utils.log import log_response
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from common.errors import FairleadError, TooManyRequests, status_of
from common.http.error_body import error_body
from common.http.full_disk import full_disk

_CODES = {
    exceptions.ValidationError: "invalid_input",
    exceptions.ParseError: "invalid_input",
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "not_authenticated",
    exceptions.PermissionDenied: "not_permitted",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
}

# The framework's codes of faults in a field, as the end of a sentence that begins with the field. {limit} is the
# number of the framework's message, with its unit where that has one.
_FAULTS = {
    "required": "is missing",
    "null": "is null; expected a value",
    "blank": "is empty; expected text",
    "min_value": "is too small; expected at least {limit}",
    "max_value": "is too large; expected at most {limit}",
    "min_length": "is too short; expected at least {limit}",
    "max_length": "is too long; expected at most {limit}",
}
_LIMIT = re.compile(r"-?\d+(?:\.\d+)?(?: characters| elements)?")


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Return the response for any exception that leaves an API view; logs an unexpected one, once."""
    set_rollback()
    error = full_disk(error) or error
    if isinstance(error, FairleadError):
        response = Response(error_body(error.code, error.message, error.field, error.details), status=status_of(error))
    elif isinstance(error, Http404):
        response = Response(error_body("not_found", "there is nothing at this address"), status=404)
    elif isinstance(error, PermissionDenied):
        response = Response(error_body("not_permitted", str(error) or "that is not permitted"), status=403)
    elif isinstance(error, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        message = f"the body has more than the {limit} bytes that this address takes; send a smaller one"
        response = Response(error_body("too_large", message), status=413)
    elif isinstance(error, UnreadablePostError):
        response = Response(error_body("invalid_input", f"the body could not be read: {error}"), status=400)
    elif isinstance(error, exceptions.APIException):
        response = _of_framework(error)
    else:
        response = _unexpected(error, context)
    if isinstance(error, TooManyRequests):
        response.headers["Retry-After"] = str(error.retry_after_s)
    if response.status_code == status.HTTP_401_UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = 'Bearer realm="fairlead"'
    return response


def _of_framework(error: exceptions.APIException) -> Response:
    code = next((_CODES[cls] for cls in type(error).__mro__ if cls in _CODES), "error")
    field, message = _first(error.detail)
    response = Response(error_body(code, message, field or None), status=error.status_code)
    if (wait_s := getattr(error, "wait", None)) is not None:
        response.headers["Retry-After"] = str(wait_s)
    return response


def _first(detail: Any, path: str = "") -> tuple[str, str]:
    """Return the dotted field and the sentence of the first of DRF's nested validation messages."""
    if isinstance(detail, dict) and detail:
        key, inner = next(iter(detail.items()))
        return _first(inner, path if key == "non_field_errors" else f"{path}.{key}".lstrip("."))
    if isinstance(detail, list) and detail:
        # A list of dictionaries has one entry for each item of the input, empty where the item is valid.
        index, inner = next((i, entry) for i, entry in enumerate(detail) if entry or i == len(detail) - 1)
        return _first(inner, f"{path}[{index}]" if isinstance(inner, dict) else path)
    return path, _sentence(path, str(detail), getattr(detail, "code", ""))


def _sentence(path: str, message: str, code: str) -> str:
    if not path:
        return message
    limit = _LIMIT.search(message)
    if (fault := _FAULTS.get(code)) is None or ("{limit}" in fault and limit is None):
        return f"{path}: {message}"
    return f"{path} {fault.format(limit=limit.group() if limit else '')}"


def _unexpected(error: Exception, context: dict[str, Any]) -> Response:
    request: HttpRequest = context["request"]._request
    response = Response(
        error_body("internal", "this is a fault of the server; its log has more under the request id"), status=500
    )
    got_request_exception.send(sender=type(context.get("view")), request=request)
    # Django logs responses of 500 too, without the traceback, unless this one is marked as logged.
    log_response("%s %s failed", request.method, request.path, response=response, request=request, exception=error)
    return response
