"""Errors between the server and a worker: Triton's codes, and the runtime's errors."""

from typing import Any

from serving_runtime.common.errors import BackendError, ErrorKind, ServingError
from serving_runtime.common.statuses import GRPC_STATUS, grpc_status

CODES = {
    "UNKNOWN": ErrorKind.UNKNOWN,
    "INTERNAL": ErrorKind.INTERNAL,
    "NOT_FOUND": ErrorKind.NOT_FOUND,
    "INVALID_ARG": ErrorKind.INVALID_ARGUMENT,
    "UNAVAILABLE": ErrorKind.UNAVAILABLE,
    "UNSUPPORTED": ErrorKind.UNSUPPORTED,
    "ALREADY_EXISTS": ErrorKind.ALREADY_EXISTS,
    "CANCELLED": ErrorKind.CANCELLED,
}
"""Triton's error codes (TRITONSERVER_Error_Code) and the kinds of the runtime's errors."""


def error_from(failure: dict[str, Any]) -> ServingError:
    """Return the error that a model raised, of the kind of its code."""
    error = BackendError(failure["message"])
    error.kind = CODES[failure.get("code", "INTERNAL")]
    return error


def failure_from(error: ServingError) -> dict[str, Any]:
    """Return a request's error in the form for a calling model."""
    status = grpc_status(error)
    code = next((code for code, kind in CODES.items() if GRPC_STATUS[kind] == status), "INTERNAL")
    return {"message": str(error), "code": code}
